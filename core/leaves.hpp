// The values of a tree's leaves, and the predictions they change.
#pragma once

#include <cstdint>
#include <vector>

#include "grow.hpp"

namespace polyleaf {

// Sets values and covers of the leaves: eq. 15 in float64 from the unrounded gradients.
void fill_leaves(const GrowTask& task, const GrowSettings& settings, const std::uint32_t* rows,
                 const std::vector<LeafRows>& leaves, GrownTree& tree);

// Adds the tree to the predictions of all rows, those outside of the sample included.
void add_to_raw(const GrowTask& task, const GrowSettings& settings, const std::uint32_t* rows,
                const std::vector<LeafRows>& leaves, const GrownTree& tree);

}  // namespace polyleaf
