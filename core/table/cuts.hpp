// Cut points of each column from its weighted distribution, or its categories.
#pragma once

#include <cstdint>
#include <vector>

#include "base/matrix_view.hpp"
#include "table/distinct_values.hpp"

namespace polyleaf {

struct ColumnCuts {
  std::vector<double> cuts;  // ascending; bin b holds the values with cuts[b - 1] < x <= cuts[b]
  bool has_missing = false;  // a NaN was seen
  bool categorical = false;
  std::vector<std::uint32_t> categories;  // of a categorical column: those seen, ascending, each with a bin of its own
};

// Most distinct values of a column that max_bins = 0 can give a bin each.
constexpr std::size_t kMostDistinct = 65535;

// Categories are whole numbers below this.
constexpr std::size_t kMostCategories = 10000;

// The sum of the weights, in whatever order they are.
double weight_total(const double* weight, std::size_t n);

// Weights as whole numbers of a small unit, at least one each: their sums are exact, so that the cuts depend on neither
// the order of the rows nor the device. The unit is a power of two of which whole weights are multiples, unless they
// add up to 2^51 or more. It hangs on the total of all rows, of which these may be some. std::invalid_argument where
// that is not finite.
std::vector<std::int64_t> weight_units(const double* weight, std::size_t n, double total);

// At most max_bins bins a column; 0: a bin for each distinct value, or std::invalid_argument where there are too many.
// `weight` may be null: every row then weighs 1. Columns where `categorical` is not 0 hold categories, and have a bin
// for each whatever max_bins is; std::invalid_argument where they hold anything else. It may be null: none do.
std::vector<ColumnCuts> find_cuts(const MatrixView& x, const double* weight, int max_bins,
                                  const std::uint8_t* categorical, int n_threads);

// Work space of a choice of cuts.
struct CutMemory {
  std::vector<int> heavy, n_bins, order, bin_end;
  std::vector<double> remainder;
  std::vector<std::int64_t> through;
};

// The same of one column whose distinct values are known, as where those of several tables are merged: the cuts are
// those of all their rows. All weights together are less than 2^52. `column` is its number, for errors.
ColumnCuts cuts_of_summary(const ColumnSummary& summary, int max_bins, bool categorical, std::size_t column,
                           CutMemory& memory);

}  // namespace polyleaf
