// The values of a tree's leaves, and the predictions they change.
#pragma once

#include <vector>

#include "growth/contract.hpp"
#include "growth/leaf_rows.hpp"
#include "quantize/bounds.hpp"

namespace polyleaf {

// Whether the outputs of a row have Hessians of their own, instead of the row's weight.
bool has_own_hessian(const Gradients& gradients);

// Sets values and covers of the leaves: eq. 15 in float64 from the unrounded gradients, whose bounds are given. Returns
// the sums they are made of (LeafSums::sum).
std::vector<double> fill_leaves(const GrowTask& task, const GrowSettings& settings, const GradientBounds& bounds,
                                const RowsInLeaves& places, GrownTree& tree);

// A leaf value as it is stored: a vanishing Hessian without regularisation may ask for more than a float can hold.
float stored_value(double value);

// Adds the tree to the predictions of all rows, those outside of the sample included.
void add_to_raw(const GrowTask& task, int n_threads, const RowsInLeaves& places, const GrownTree& tree);

}  // namespace polyleaf
