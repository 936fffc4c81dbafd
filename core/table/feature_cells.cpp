#include "table/feature_cells.hpp"

#include <algorithm>
#include <numeric>

#include "table/binned_matrix.hpp"

namespace polyleaf {
namespace {

// Going on to another row costs as much as about so many cells; and a cell that is listed twice takes six bytes more.
constexpr std::size_t kMostCellsOfRow = 4;
// And so much does a row itself cost that cells of all rows are visited for those of one of so many.
constexpr std::size_t kRowsPerVisited = 4;

}  // namespace

FeatureCells list_by_features(const FeatureTile& tile) {
  const VisitedCells& cells = tile.cells;
  const std::size_t n_rows = cells.row_begin.size() - 1, n_cells = cells.slots.size();
  FeatureCells out;
  if (tile.keeps_codes || n_cells > kMostCellsOfRow * n_rows) return out;
  std::vector<std::uint32_t> next(tile.n_slots() + 1, 0);  // per slot: first cells, then where the next of them belongs
  for (std::size_t at = 0; at < n_cells; ++at) ++next[cells.slots[at] + 1u];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (const std::uint32_t slot : tile.slot_begin) out.begin.push_back(next[slot]);
  out.rows = Buffer<std::uint32_t>(n_cells);
  out.slots = Buffer<std::uint16_t>(n_cells);
  for (std::size_t row = 0; row < n_rows; ++row)
    for (std::uint32_t at = cells.row_begin[row]; at < cells.row_begin[row + 1]; ++at) {
      const std::uint16_t slot = cells.slots[at];
      const std::uint32_t to = next[slot]++;
      out.rows[to] = static_cast<std::uint32_t>(row);
      out.slots[to] = slot;
    }
  return out;
}

bool has_many_feature_cells(const BinnedMatrix& matrix, std::size_t n_rows) {
  return kRowsPerVisited * n_rows >= matrix.n_rows &&
         std::any_of(matrix.tiles.begin(), matrix.tiles.end(),
                     [](const FeatureTile& tile) { return !tile.feature_cells.empty(); });
}

}  // namespace polyleaf
