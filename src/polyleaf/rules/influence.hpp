// How much a row may say in a leaf, where its influence is bounded. The squared error follows a row however far off it
// is: one wrong target takes the leaf of its neighbours along. So a residual counts up to
//
//   limit = max(6 * mean |g| of all rows,  2 * sqrt(rows of the leaf) * mean |g| of the leaf's other rows)
//
// The first lets ordinary rows alone: of normal residuals, 6 mean magnitudes are 4.8 standard deviations. The second
// lets rows alone that others in the leaf agree with, and rows of large leaves, which no single one moves by more than
// twice the error of their mean. What is cut off is said to all rows alike, so that predictions keep their mean.
//
// A weight counts rows, in multiples of the least weight: weight 2 is the row twice.
#pragma once

#include "rules/rule.hpp"

#if !defined(__CUDACC__)
#include <cmath>
#endif

namespace polyleaf {

constexpr double kOrdinaryMagnitudes = 6.0;
constexpr double kErrorsOfMean = 2.0;

// `ordinary`: the mean magnitude of all rows; `row`: the least weight of any. The others are of a leaf: its sum of
// magnitudes, the largest of them, and its weight.
POLYLEAF_RULE double influence_limit(double ordinary, double row, double magnitudes, double largest, double weight) {
#if !defined(__CUDACC__)
  using std::sqrt;
#endif
  const double rest = magnitudes - row * largest;
  const double others = weight > row && rest > 0 ? rest / (weight - row) : 0.0;
  const double of_leaf = kErrorsOfMean * sqrt(weight / row) * others;
  const double of_all = kOrdinaryMagnitudes * ordinary;
  return of_leaf > of_all ? of_leaf : of_all;
}

// The gradients of a leaf, with its share of what was cut off (`cut`: of a row).
POLYLEAF_RULE double said_to_all(double gradients, double weight, double cut) {
  return cut == 0 ? gradients : gradients + weight * cut;
}

POLYLEAF_RULE double within_limit(double x, double limit) { return x > limit ? limit : x < -limit ? -limit : x; }

}  // namespace polyleaf
