// Bounds, in float32, on the sum of the k largest terms of a candidate whose outputs share one Hessian: the sums of all
// outputs stand side by side, those that can have the largest terms first (label_sparse/node_labels.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace polyleaf {

// One candidate: the sums of one of its sides, and of the node.
struct LabelSums {
  const std::int32_t* side;
  const std::int32_t* totals;
  const float* root;   // a gradient times this is the root of what is divided by H + lambda; padded with 0
  const float* alpha;  // what gradients are shrunk by; null: they are not
  std::size_t n;       // outputs to look at; those behind them have no terms above the thresholds
  float inverse_side;  // 1 / (H + lambda)
  float inverse_rest;
  bool restricted;  // both sides hold the same outputs: their terms are added first
};

// What is known of its terms: of both sides together or, unless restricted, of each.
struct LabelBound {
  int k;
  float least;         // a bound below is close enough
  float threshold[2];  // where to begin; left where it ended
  float lowest[2];     // outputs that are not looked at have terms of no more
  float* terms[2];     // room for n terms in whole vectors; left there
  float passed[2];     // the highest thresholds that were seen to have k terms above them; below 0: none was
  float above;         // the bound
};

// Numbers to a vector of terms, at most.
constexpr std::size_t kLabelLane = 16;

struct LabelBoundKernels {
  // What lies above the thresholds, in all.
  float (*excess)(const LabelSums& sums, const float (&threshold)[2]);
  // Moves the thresholds until the bound is close or below `least`.
  void (*settle)(const LabelSums& sums, LabelBound& bound);
};

// Of the instruction set in use (kernels/dispatch.hpp).
const LabelBoundKernels& label_bound_kernels();

}  // namespace polyleaf
