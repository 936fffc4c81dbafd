// The cells that a tile lists once more, feature after feature, in the order of the rows:
//
//   rows:       | feature 0: 3, 17, 40 | feature 1: 2, 3 | ...
//   slots:      |            1   0   1 |            4  6 | ...
//   begin:      0                      3                 5
//
// Of all rows, or nearly all, most have no cell in a tile where cells are few: going from row to row costs more than
// the cells do.
//
// What it buys: a third of a fit of 100,000 x 200,000 with 20 cells a row (docs/performance.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/buffer.hpp"

namespace polyleaf {

struct BinnedMatrix;
struct FeatureTile;

struct FeatureCells {
  Buffer<std::uint32_t> rows;
  Buffer<std::uint16_t> slots;
  std::vector<std::uint32_t> begin;  // one more than features

  bool empty() const { return begin.empty(); }
};

// Those of a tile without codes; none where rows have so many cells that they are better visited row by row.
FeatureCells list_by_features(const FeatureTile& tile);

// Whether any tile has them, and so many rows are enough to visit those of all rows in their place.
bool has_many_feature_cells(const BinnedMatrix& matrix, std::size_t n_rows);

}  // namespace polyleaf
