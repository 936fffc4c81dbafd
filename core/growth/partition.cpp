#include "growth/partition.hpp"

#include <algorithm>

#include "rules/routing.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kBlockRows = 8192;
constexpr std::size_t kAhead = 32;  // rows: their codes are fetched this far ahead

// The codes of one feature of a tile that keeps codes.
template <class Code>
struct KeptCodes {
  const Code* codes;
  std::size_t stride;

  void fetch(std::uint32_t row) const { __builtin_prefetch(codes + row * stride); }
  std::uint32_t operator()(std::uint32_t row) const { return codes[row * stride]; }
};

// And of one that has the cells outside of frequent bins alone.
struct ListedCodes {
  const FeatureTile& tile;
  std::size_t position;

  void fetch(std::uint32_t row) const { __builtin_prefetch(tile.cells.row_begin.data() + row); }
  std::uint32_t operator()(std::uint32_t row) const { return tile.code(row, position); }
};

// Left rows to the front of `left`, right rows to the front of `right`; the two may not overlap, except that `left` may
// be `rows` itself.
template <class Codes, class GoesLeft>
std::size_t partition_block(const Codes& codes, const GoesLeft& goes_left, const std::uint32_t* rows, std::size_t n,
                            std::uint32_t* left, std::uint32_t* right) {
  std::size_t n_left = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t row = rows[i];
    if (i + kAhead < n) codes.fetch(rows[i + kAhead]);
    const bool goes = goes_left(codes(row));
    left[n_left] = row;
    right[i - n_left] = row;
    n_left += goes ? 1 : 0;
  }
  return n_left;
}

template <class GoesLeft>
std::size_t partition_by(const FeatureTile& tile, std::size_t position, const GoesLeft& goes_left, std::uint32_t* rows,
                         std::size_t n, std::uint32_t* spare, const Team& team) {
  const std::size_t stride = tile.n_features();
  const auto run = [&](const std::uint32_t* from, std::size_t count, std::uint32_t* left, std::uint32_t* right) {
    if (!tile.keeps_codes) return partition_block(ListedCodes{tile, position}, goes_left, from, count, left, right);
    if (!tile.wide)
      return partition_block(KeptCodes<std::uint8_t>{tile.codes.data() + position, stride}, goes_left, from, count,
                             left, right);
    const auto* codes = reinterpret_cast<const std::uint16_t*>(tile.codes.data()) + position;
    return partition_block(KeptCodes<std::uint16_t>{codes, stride}, goes_left, from, count, left, right);
  };

  const std::size_t n_blocks = (n + kBlockRows - 1) / kBlockRows;
  std::vector<std::size_t> n_left(n_blocks);
  team.run(n_blocks > 2, n_blocks, [&](std::size_t block, int) {
    const std::size_t begin = block * kBlockRows;
    const std::size_t count = std::min(kBlockRows, n - begin);
    n_left[block] = run(rows + begin, count, rows + begin, spare + begin);
  });
  // Each block now has its left rows in place and its right rows in the spare array: close the gaps, in order.
  std::size_t total_left = 0;
  for (std::size_t block = 0; block < n_blocks; ++block) {
    const std::uint32_t* from = rows + block * kBlockRows;
    std::copy(from, from + n_left[block], rows + total_left);
    total_left += n_left[block];
  }
  std::size_t at = total_left;
  for (std::size_t block = 0; block < n_blocks; ++block) {
    const std::size_t begin = block * kBlockRows;
    const std::size_t n_right = std::min(kBlockRows, n - begin) - n_left[block];
    std::copy(spare + begin, spare + begin + n_right, rows + at);
    at += n_right;
  }
  return total_left;
}

}  // namespace

std::size_t partition_rows(const BinnedMatrix& matrix, const Candidate& split, const CategoryPartition& partition,
                           std::uint32_t* rows, std::size_t n, std::uint32_t* spare, const Team& team) {
  const FeatureBins& bins = matrix.features[static_cast<std::size_t>(split.feature)];
  const FeatureTile& tile = matrix.tiles[bins.tile];
  if (bins.categorical) {
    std::vector<std::uint8_t> left(bins.missing_code() + 1, 0);
    for (const std::uint32_t bin : partition.left) left[bin] = 1;
    left[bins.missing_code()] = split.missing_left ? 1 : 0;
    return partition_by(tile, bins.position, [&](std::uint32_t code) { return left[code] != 0; }, rows, n, spare, team);
  }
  const CodeSplit by_code = split_by_code(split.bin, split.missing_left, bins.missing_code());
  return partition_by(
      tile, bins.position, [=](std::uint32_t code) { return goes_left(by_code, code); }, rows, n, spare, team);
}

}  // namespace polyleaf
