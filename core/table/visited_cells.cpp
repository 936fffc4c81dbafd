#include "table/visited_cells.hpp"

#include <algorithm>
#include <numeric>

#include "base/threads.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kMostLinesAhead = 4;  // from there on the processor sees by itself where a row goes on
constexpr std::size_t kBlockRows = 1024;

template <class Code>
VisitedCells cells_outside_frequent_bins(const FeatureTile& tile, std::size_t n_rows, int n_threads) {
  const std::size_t k = tile.n_features();
  const Code* codes = reinterpret_cast<const Code*>(tile.codes.data());
  return list_rows(n_rows, k, n_threads, [&tile, codes, k](std::size_t row, std::uint16_t* slots) {
    std::size_t n = 0;
    for (std::size_t position = 0; position < k; ++position) {  // without branches on the data
      const std::uint32_t slot = tile.slot_begin[position] + codes[row * k + position];
      slots[n] = static_cast<std::uint16_t>(slot);
      n += slot != tile.frequent_slot[position] ? 1 : 0;
    }
    return n;
  });
}

}  // namespace

// Of rows with very many cells, only the first lines are worth fetching ahead.
TileCells VisitedCells::view() const {
  const std::size_t rows = row_begin.size() - 1;
  const std::size_t twice_the_mean = 2 * slots.size() * sizeof(std::uint16_t) / std::max<std::size_t>(1, rows);
  return {row_begin.data(), slots.data(), std::min(twice_the_mean / kLineBytes + 1, kMostLinesAhead)};
}

VisitedCells list_rows(std::size_t n_rows, std::size_t most, int n_threads, const ListRow& list_row) {
  VisitedCells cells;
  cells.row_begin.assign(n_rows + 1, 0);
  const std::size_t n_blocks = (n_rows + kBlockRows - 1) / kBlockRows;
  const int n_working = n_rows * most < kParallelWork ? 1 : n_threads;
  std::vector<std::vector<std::uint16_t>> pieces(n_blocks);
  std::vector<Buffer<std::uint16_t>> scratch(static_cast<std::size_t>(std::max(1, n_working)));
  parallel_for(n_working, n_blocks, [&](std::size_t block, int thread) {
    const std::size_t begin = block * kBlockRows;
    const std::size_t end = std::min(n_rows, begin + kBlockRows);
    Buffer<std::uint16_t>& slots = scratch[static_cast<std::size_t>(thread)];
    slots.grow(std::min(n_rows, kBlockRows) * most);
    std::size_t n = 0;
    for (std::size_t row = begin; row < end; ++row) {
      const std::size_t count = list_row(row, slots.data() + n);
      cells.row_begin[row + 1] = static_cast<std::uint32_t>(count);
      n += count;
    }
    pieces[block].assign(slots.data(), slots.data() + n);
  });
  std::partial_sum(cells.row_begin.begin(), cells.row_begin.end(), cells.row_begin.begin());
  cells.slots = Buffer<std::uint16_t>(cells.row_begin.back());
  parallel_for(n_working, n_blocks, [&](std::size_t block, int) {
    std::copy(pieces[block].begin(), pieces[block].end(), cells.slots.data() + cells.row_begin[block * kBlockRows]);
    pieces[block] = {};
  });
  return cells;
}

VisitedCells list_visited_cells(const FeatureTile& tile, std::size_t n_rows, int n_threads) {
  if (!tile.skips_frequent) return {};
  return tile.wide ? cells_outside_frequent_bins<std::uint16_t>(tile, n_rows, n_threads)
                   : cells_outside_frequent_bins<std::uint8_t>(tile, n_rows, n_threads);
}

}  // namespace polyleaf
