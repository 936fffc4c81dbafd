// Which nodes best-first growth (Algorithm 5 of the paper) can never split, so that they need not be visited. A node is
// split after all those on the way to it: not before what is left is the smallest gain of that way, its path minimum.
#pragma once

#include "rules/scoring.hpp"

namespace polyleaf {

// Whether the number of leaves, not the depth, bounds a tree. 2^30 leaves are as good as no limit.
POLYLEAF_RULE bool leaves_are_scarce(int max_depth, int max_leaves) {
  return max_leaves < (1ll << (max_depth < 30 ? max_depth : 30));
}

// Of a node that would gain this much, below a parent with this path minimum.
POLYLEAF_RULE double path_minimum(double of_parent, double gain) { return gain < of_parent ? gain : of_parent; }

// The bar that path minima have to reach, where max_leaves - 1 other nodes have at least `least_of_best`: these use up
// the leaves first. Nodes are given up for lost only where gains differ by more than this share of the largest score.
// What counts as equal when the order is replayed (kRounding) is far less, also if larger scores turn up later.
POLYLEAF_RULE double pruning_bar(double least_of_best, double largest_score) {
  constexpr double kMargin = 1e-9;
  return least_of_best - kMargin * largest_score;
}

POLYLEAF_RULE bool is_hopeless(double path_minimum, double bar) { return path_minimum < bar; }

// Whether two gains are equal but for rounding, the second being the larger: the node that was created first is then
// split first.
POLYLEAF_RULE bool gains_are_equal(double gain, double larger, double largest_score) {
  return gain >= larger - kRounding * largest_score;
}

}  // namespace polyleaf
