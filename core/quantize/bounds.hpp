// How large the numbers are that a round sums over its rows: grids of sums that no order changes hang on it.
#pragma once

#include <cstddef>
#include <vector>

#include "gradients/gradient_arrays.hpp"

namespace polyleaf {

// Bounds on weighted magnitudes, per output.
struct GradientBounds {
  std::vector<double> gradient;
  std::vector<double> hessian;  // empty where the outputs have none of their own
  double weight = 1.0;
};

// A gradient p - y whose Hessian follows by a rule is within 1, and so is that Hessian; of others the largest is looked
// for.
GradientBounds bounds_of(const Gradients& gradients, int n_threads);

}  // namespace polyleaf
