#include "table/row_hashes.hpp"

#include <algorithm>

#include "base/threads.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kBlockRows = 1024;
constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15ull;  // 2^64 over the golden ratio

// A bijection in which every bit of the result hangs on all bits (the end of SplitMix64).
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

std::uint64_t hash_of_cell(const FeatureTile& tile, std::size_t position, std::uint32_t code) {
  const std::uint64_t feature = static_cast<std::uint64_t>(tile.features[position]) + 1;
  return mixed(feature * kStep + code);
}

std::uint64_t hash_of_frequent(const FeatureTile& tile, std::size_t position) {
  return hash_of_cell(tile, position, tile.frequent_slot[position] - tile.slot_begin[position]);
}

// Adds the cells of rows of a tile that keeps no codes: those of frequent bins as one sum, but for the others.
void add_listed(const FeatureTile& tile, std::size_t begin, std::size_t end, std::vector<std::uint64_t>& hashes) {
  std::uint64_t all_frequent = 0;
  for (std::size_t position = 0; position < tile.n_features(); ++position)
    all_frequent += hash_of_frequent(tile, position);
  for (std::size_t row = begin; row < end; ++row) {
    hashes[row] += all_frequent;
    each_listed(tile, row, [&](std::size_t position, std::uint32_t code) {
      hashes[row] += hash_of_cell(tile, position, code) - hash_of_frequent(tile, position);
    });
  }
}

}  // namespace

std::vector<std::uint64_t> row_hashes(const BinnedMatrix& matrix, int n_threads) {
  std::vector<std::uint64_t> hashes(matrix.n_rows, 0);
  const std::size_t n_blocks = (matrix.n_rows + kBlockRows - 1) / kBlockRows;
  const bool worthwhile = matrix.n_rows * matrix.features.size() >= kParallelWork;
  parallel_for(worthwhile ? n_threads : 1, n_blocks, [&](std::size_t block, int) {
    const std::size_t begin = block * kBlockRows, end = std::min(matrix.n_rows, begin + kBlockRows);
    // Cells are added up, so that the order of the tiles does not matter.
    for (const FeatureTile& tile : matrix.tiles) {
      if (!tile.keeps_codes) {
        add_listed(tile, begin, end, hashes);
        continue;
      }
      for (std::size_t row = begin; row < end; ++row)
        for (std::size_t position = 0; position < tile.n_features(); ++position)
          hashes[row] += hash_of_cell(tile, position, tile.code(row, position));
    }
    for (std::size_t row = begin; row < end; ++row) hashes[row] = mixed(hashes[row] + kStep);
  });
  return hashes;
}

}  // namespace polyleaf
