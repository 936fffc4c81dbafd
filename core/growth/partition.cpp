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

// Left rows from the front of `parted` on, right rows from its end on, backwards.
template <class Codes, class GoesLeft>
std::size_t partition_block(const Codes& codes, const GoesLeft& goes_left, const std::uint32_t* rows, std::size_t n,
                            std::uint32_t* parted) {
  std::size_t n_left = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t row = rows[i];
    if (i + kAhead < n) codes.fetch(rows[i + kAhead]);
    const bool goes = goes_left(codes(row));
    // Both places are free: n - i of them are. The one it does not take is taken by a later row.
    parted[n_left] = row;
    parted[n - 1 - (i - n_left)] = row;
    n_left += goes ? 1 : 0;
  }
  return n_left;
}

template <class GoesLeft>
std::size_t partition_by(const FeatureTile& tile, std::size_t position, const GoesLeft& goes_left, std::uint32_t* rows,
                         std::size_t n, std::uint32_t* spare, const Team& team) {
  const std::size_t stride = tile.n_features();
  const auto part = [&](const std::uint32_t* from, std::size_t count, std::uint32_t* parted) {
    if (!tile.keeps_codes) return partition_block(ListedCodes{tile, position}, goes_left, from, count, parted);
    if (!tile.wide)
      return partition_block(KeptCodes<std::uint8_t>{tile.codes.data() + position, stride}, goes_left, from, count,
                             parted);
    const auto* codes = reinterpret_cast<const std::uint16_t*>(tile.codes.data()) + position;
    return partition_block(KeptCodes<std::uint16_t>{codes, stride}, goes_left, from, count, parted);
  };

  // From a block's place in `spare` back into order: its left rows from `left` on, its right ones from `right` on.
  const auto put = [&](std::size_t begin, std::size_t end, std::size_t n_left, std::size_t left, std::size_t right) {
    std::copy(spare + begin, spare + begin + n_left, rows + left);
    std::reverse_copy(spare + begin + n_left, spare + end, rows + right);
  };

  if (n <= kBlockRows) {
    const std::size_t n_left = part(rows, n, spare);
    put(0, n, n_left, 0, n_left);
    return n_left;
  }
  const std::size_t n_blocks = (n + kBlockRows - 1) / kBlockRows;
  const bool worthwhile = n_blocks > 2;
  std::vector<std::size_t> left_end(n_blocks);  // at first of each block, then up to it
  const auto size_of = [&](std::size_t block) { return std::min(kBlockRows, n - block * kBlockRows); };
  team.run(worthwhile, n_blocks, [&](std::size_t block, int) {
    const std::size_t begin = block * kBlockRows;
    left_end[block] = part(rows + begin, size_of(block), spare + begin);
  });
  for (std::size_t block = 1; block < n_blocks; ++block) left_end[block] += left_end[block - 1];
  const std::size_t n_left = left_end.back();
  team.run(worthwhile, n_blocks, [&](std::size_t block, int) {
    const std::size_t begin = block * kBlockRows, end = begin + size_of(block);
    const std::size_t left_begin = block == 0 ? 0 : left_end[block - 1];
    put(begin, end, left_end[block] - left_begin, left_begin, n_left + (begin - left_begin));
  });
  return n_left;
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
