// Which outputs gain by which features of a tree.
#pragma once

#include <vector>

#include "best_first.hpp"
#include "grow.hpp"

namespace polyleaf {

// Shares the gain of each split out to the outputs, and adds the shares up for each feature. They come from the
// gradients that leaf values are made of, unrounded and without the outputs' weights in the split score. Not for a full
// Hessian, whose score is no sum over outputs.
// `leaf_sums`: as fill_leaves returns them.
void share_gains(const GrowTask& task, const GrowSettings& settings, const Payload& payload,
                 const BestFirst::Order& order, const std::vector<double>& leaf_sums, GrownTree& tree);

}  // namespace polyleaf
