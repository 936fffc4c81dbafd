// Cut points of each column from its weighted distribution.
#pragma once

#include <cstdint>
#include <vector>

#include "matrix_view.hpp"

namespace polyleaf {

struct ColumnCuts {
  std::vector<double> cuts;  // ascending; bin b holds the values with cuts[b - 1] < x <= cuts[b]
  bool has_missing = false;  // a NaN was seen
};

// Most distinct values of a column that max_bins = 0 can give a bin each.
constexpr std::size_t kMostDistinct = 65535;

// At most max_bins bins a column; 0: a bin for each distinct value, or std::invalid_argument where there are too many.
// `weight` may be null: every row then weighs 1.
std::vector<ColumnCuts> find_cuts(const MatrixView& x, const double* weight, int max_bins, int n_threads);

}  // namespace polyleaf
