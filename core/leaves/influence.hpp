// Leaves in which no row has more than a bounded influence (rules/influence.hpp).
#pragma once

#include <vector>

#include "growth/leaf_rows.hpp"
#include "leaves/leaf_sums.hpp"
#include "quantize/bounds.hpp"

namespace polyleaf {

// The sums of gradients that leaf values are made of (leaves x outputs); empty: no row has too much influence.
// `total` is what `sums` has of the leaves, magnitudes included; `row`: the least weight of any row, `weighted`:
// whether rows have weights.
std::vector<double> bounded_sums(const LeafSums& sums, const std::vector<double>& total, const GradientBounds& bounds,
                                 double row, bool weighted, const RowsInLeaves& places, int n_threads);

}  // namespace polyleaf
