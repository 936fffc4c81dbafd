// The whole tree of nodes and leaf values that come from a device.
#pragma once

#include <cstdint>

#include "growth/grown_tree.hpp"
#include "growth/visited_tree.hpp"
#include "leaves/output_gain.hpp"

namespace polyleaf {

// Per leaf, in the order of the leaves.
struct VisitedLeaves {
  const float* values = nullptr;           // leaves x outputs
  const double* cover = nullptr;           // weights of its rows
  const std::int64_t* all_rows = nullptr;  // how many, where leaves were filled with rows that the splits did not see
  const double* leaf_sums = nullptr;       // as share_gains takes them; null: gains are not shared out
};

GrownTree finish_tree(const VisitedTree& visited, const VisitedLeaves& leaves, const GainTerms& terms);

}  // namespace polyleaf
