// A sparse table as bin codes, without a dense one on the way: cut points from the stored cells and the number of the
// others, which are zeros.
//
// Three ways to keep a feature:
//
//   codes      one for each row, as in a dense table, where many cells are outside of its most frequent bin
//   cells      those outside of that bin alone, where they are few
//   not at all where each split would leave too few rows on one side: it has one bin, and is in no tile
//
// What it buys: a table of 10,000 x 20,000 with 200,000 cells takes megabytes instead of 200, and its features that
// cannot be split cost nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/matrix_view.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

// The stored cells, column by column.
struct SparseColumns {
  MatrixView values;                    // cells x 1; NaN is missing
  const std::int32_t* rows = nullptr;   // of each cell; ascending within a column
  const std::int64_t* begin = nullptr;  // where the cells of a column begin; one more than columns
  std::size_t n_rows = 0;
  std::size_t n_columns = 0;

  std::size_t size(std::size_t column) const { return static_cast<std::size_t>(begin[column + 1] - begin[column]); }
};

struct SparseBinning {
  const double* weight = nullptr;  // of each row; null: 1
  int max_bins = 255;              // as for find_cuts
  // Features of which no split leaves that many rows on both sides are in no tile; 0: all are. Splits of some of the
  // rows leave no more.
  std::int64_t least_rows = 0;
  bool keeps_codes = true;  // of all features
  int n_threads = 1;
};

// With the cut points that the same table has if it is dense.
BinnedMatrix bin_sparse(const SparseColumns& x, const SparseBinning& options);

}  // namespace polyleaf
