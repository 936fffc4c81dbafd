// A node while its tree is being grown.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "growth/category_partition.hpp"
#include "growth/value_bounds.hpp"
#include "rules/acceptance.hpp"

namespace polyleaf {

struct Node {
  std::size_t begin = 0;  // its rows here, as positions in the array of row numbers
  std::size_t end = 0;
  std::size_t n_rows = 0;  // its rows in all shards
  int depth = 0;
  std::uint64_t path = 1;  // a 0 for each turn left and a 1 for each turn right, after a leading 1
  int slot = -1;           // where its histogram is kept; -1: nowhere
  int left = -1;           // indices of the visited children
  int right = -1;
  Candidate split;
  CategoryPartition partition;  // of a split by categories
  double gain = 0.0;            // of the best split; 0: not to be split
  double path_minimum = std::numeric_limits<double>::infinity();
  std::vector<std::int32_t> totals;        // sums of its rows, with PayloadLayout::kSlack
  std::vector<std::int32_t> leaf_outputs;  // sparse leaves: the outputs it says something about
  ValueBounds bounds;                      // monotone constraints
  std::vector<std::int32_t> groups;        // interaction constraints: those that hold all features on the way to it

  std::size_t n_here() const { return end - begin; }
};

inline bool may_split(const Node& node, const Rules& rules) { return may_split(node.depth, node.n_rows, rules); }

// Takes over the best candidate found for a node, if it gains enough. `involved`: how many outputs the node speaks of.
inline void accept_split(Node& node, const Candidate& best, double own_score, std::size_t involved,
                         const Rules& rules) {
  if (best.feature < 0) return;
  node.split = best;
  node.gain = accepted_gain(best.score, own_score, static_cast<double>(involved), rules.min_split_gain);
}

}  // namespace polyleaf
