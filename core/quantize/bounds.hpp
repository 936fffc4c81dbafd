// How large the numbers are that a round sums over its rows: grids of sums that no order changes hang on it.
#pragma once

#include <cstddef>
#include <vector>

#include "base/shard.hpp"
#include "gradients/gradient_arrays.hpp"
#include "kernels/sum.hpp"

namespace polyleaf {

// Bounds on weighted magnitudes, per output.
struct GradientBounds {
  std::vector<double> gradient;
  std::vector<double> hessian;  // empty where the outputs have none of their own
  double weight = 1.0;
  bool wide = false;  // weights of the rows differ too much for sums by one bound (span_widely)
};

// Whether some weights are more than 2^30 times others: next to the heaviest row, sums over the rows of a leaf would
// lose leaves of light rows altogether. They are then plain sums, in the order of the rows.
bool span_widely(const double* weight, std::size_t n_rows, const Shard& shard = {});

// The largest weighted magnitude of each column.
std::vector<double> largest_magnitudes(const WeightedRows& rows, std::size_t n_rows, int n_threads);

// A gradient p - y whose Hessian follows by a rule is within 1, and so is that Hessian; of others the largest is looked
// for.
GradientBounds bounds_of(const Gradients& gradients, const Shard& shard, int n_threads);

}  // namespace polyleaf
