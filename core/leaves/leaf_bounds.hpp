// Leaf values within the bounds that monotone constraints leave them.
#pragma once

#include <vector>

#include "growth/grown_tree.hpp"
#include "growth/replay.hpp"

namespace polyleaf {

// Brings the leaves' values, which are made of unrounded gradients, within the bounds of their nodes. `unit`, per
// output: what the bounds are multiples of.
void clip_leaves(const Order& order, const std::vector<double>& unit, double learning_rate, GrownTree& tree);

}  // namespace polyleaf
