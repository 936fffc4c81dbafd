#include "table/take_rows.hpp"

#include <algorithm>
#include <cstring>

#include "base/threads.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kBlockRows = 1024;

// Where each row's cells begin, and room for them.
VisitedCells empty_copy(const VisitedCells& cells, const std::uint32_t* rows, std::size_t n_rows) {
  VisitedCells out;
  if (cells.empty()) return out;
  out.row_begin.assign(n_rows + 1, 0);
  for (std::size_t i = 0; i < n_rows; ++i)
    out.row_begin[i + 1] = out.row_begin[i] + cells.row_begin[rows[i] + 1] - cells.row_begin[rows[i]];
  out.slots = Buffer<std::uint16_t>(out.row_begin.back());
  return out;
}

// Everything but the cells.
FeatureTile empty_copy(const FeatureTile& tile, const std::uint32_t* rows, std::size_t n_rows) {
  FeatureTile out;
  static_cast<TileLayout&>(out) = tile;
  if (tile.keeps_codes) out.codes = Buffer<std::uint8_t>(n_rows * tile.n_features() * (tile.wide ? 2 : 1));
  out.cells = empty_copy(tile.cells, rows, n_rows);
  out.combinations.first = tile.combinations.first;
  out.combinations.slot_begin = tile.combinations.slot_begin;
  out.combinations.cells = empty_copy(tile.combinations.cells, rows, n_rows);
  return out;
}

void copy_cells(const VisitedCells& from, const std::uint32_t* rows, std::size_t begin, std::size_t end,
                VisitedCells& to) {
  if (from.empty()) return;
  const std::uint16_t* slots = from.slots.data();
  for (std::size_t i = begin; i < end; ++i)
    std::copy(slots + from.row_begin[rows[i]], slots + from.row_begin[rows[i] + 1], to.slots.data() + to.row_begin[i]);
}

void copy_cells(const FeatureTile& from, const std::uint32_t* rows, std::size_t begin, std::size_t end,
                FeatureTile& to) {
  const std::size_t row_bytes = from.keeps_codes ? from.n_features() * (from.wide ? 2 : 1) : 0;
  for (std::size_t i = begin; i < end; ++i)
    if (row_bytes > 0) std::memcpy(to.codes.data() + i * row_bytes, from.codes.data() + rows[i] * row_bytes, row_bytes);
  copy_cells(from.cells, rows, begin, end, to.cells);
  copy_cells(from.combinations.cells, rows, begin, end, to.combinations.cells);
}

}  // namespace

BinnedMatrix take_rows(const BinnedMatrix& matrix, const std::uint32_t* rows, std::size_t n_rows, int n_threads) {
  BinnedMatrix out;
  out.n_rows = n_rows;
  out.n_slots = matrix.n_slots;
  out.features = matrix.features;
  for (const FeatureTile& tile : matrix.tiles) out.tiles.push_back(empty_copy(tile, rows, n_rows));
  const std::size_t n_blocks = (n_rows + kBlockRows - 1) / kBlockRows;
  const std::size_t work = n_rows * matrix.features.size();
  parallel_for(work < kParallelGathers ? 1 : n_threads, n_blocks, [&](std::size_t block, int) {
    const std::size_t begin = block * kBlockRows;
    const std::size_t end = std::min(n_rows, begin + kBlockRows);
    for (std::size_t t = 0; t < out.tiles.size(); ++t) copy_cells(matrix.tiles[t], rows, begin, end, out.tiles[t]);
  });
  parallel_for(work < kParallelGathers ? 1 : n_threads, out.tiles.size(), [&](std::size_t at, int) {
    if (!out.tiles[at].keeps_codes) out.tiles[at].feature_cells = list_by_features(out.tiles[at]);
  });
  return out;
}

}  // namespace polyleaf
