// The best-first tree (Algorithm 5 of the paper), read off the gains of nodes that were visited in any order.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "growth/node.hpp"

namespace polyleaf {

// The nodes in the order in which best-first growth creates them, and the left child of each (-1: leaf) in that order.
struct Order {
  std::vector<const Node*> nodes;
  std::vector<std::int32_t> left;
};

// `nodes`: the visited ones, the root first. Gains that differ by kRounding of the largest score of the nodes created
// so far are equal, and ties go to the node created first.
Order replay(const std::deque<Node>& nodes, int max_leaves);

}  // namespace polyleaf
