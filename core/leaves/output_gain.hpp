// Which outputs gain by which features of a tree.
#pragma once

#include <vector>

#include "growth/grown_tree.hpp"
#include "growth/replay.hpp"

namespace polyleaf {

// Shares the gain of each split out to the outputs, and adds the shares up for each feature. They come from the
// gradients that leaf values are made of, unrounded and without the outputs' weights in the split score. Not for a full
// Hessian, whose score is no sum over outputs.
struct GainTerms {
  int n_outputs = 0;
  const double* unit = nullptr;  // per output: gradients are multiples of it
  bool own_hessian = false;      // each output has its own; else the weight of the rows is it
  double reg_lambda = 0.0;
  double reg_alpha = 0.0;
  const double* bound_unit = nullptr;  // per output: what the bounds of monotone constraints are multiples of
};

// `leaf_sums`: for each leaf of the tree gradients (d), Hessians (d) and weight.
void share_gains(const GainTerms& terms, const Order& order, const double* leaf_sums, GrownTree& tree);

}  // namespace polyleaf
