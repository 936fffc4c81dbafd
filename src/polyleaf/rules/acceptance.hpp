// Which nodes are split: enough rows, both children large and heavy enough, and enough to gain.
#pragma once

#include "rules/scoring.hpp"

namespace polyleaf {

// Whether a node has the rows of two children.
POLYLEAF_RULE bool enough_for_two(unsigned long long n_rows, int min_samples_leaf) {
  return n_rows >= 2 * static_cast<unsigned long long>(min_samples_leaf);
}

// Whether a node may be split at all.
POLYLEAF_RULE bool may_split(int depth, unsigned long long n_rows, const Rules& rules) {
  return depth < rules.max_depth && enough_for_two(n_rows, rules.min_samples_leaf) && rules.max_leaves > 1;
}

// Whether both children have rows enough.
POLYLEAF_RULE bool large_enough(long long n_left, long long n_rows, long long min_samples_leaf) {
  return n_left >= min_samples_leaf && n_rows - n_left >= min_samples_leaf;
}

// Whether both children weigh enough: the mean of their Hessian over the outputs.
POLYLEAF_RULE bool heavy_enough(double left_weight, double weight, double min_child_weight) {
  return min_child_weight <= 0 || (left_weight >= min_child_weight && weight - left_weight >= min_child_weight);
}

// What a node gains by its best split; 0 where it does not gain enough, on average over the outputs it speaks of.
// Always finite, so that gains can be compared.
POLYLEAF_RULE double accepted_gain(double children_score, double own_score, double n_outputs, double min_split_gain) {
  constexpr double kLargest = 1.7976931348623157e308;
  const double gain = split_gain(children_score, own_score);
  if (!(gain / n_outputs > min_split_gain)) return 0;
  return gain < kLargest ? gain : kLargest;
}

}  // namespace polyleaf
