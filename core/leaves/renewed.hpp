// Leaf values of losses whose Hessian says nothing (absolute error, quantiles): from the residuals themselves.
#pragma once

#include <vector>

#include "growth/contract.hpp"
#include "growth/leaf_rows.hpp"

namespace polyleaf {

struct WeightedResidual {
  double residual;
  double weight;
};

// The value that minimises the weighted sum of pinball losses: of the residuals in ascending order the first whose
// cumulative weight reaches level * total. Where it equals that (but for kRounding), everything up to the next residual
// is a minimum, and the value is halfway. 0 without residuals. The vector is left in another order.
double residual_quantile(std::vector<double>& residuals, double level);
double residual_quantile(std::vector<WeightedResidual>& residuals, double level);

// Replaces the values of the outputs that are renewed, before the tree is added to the predictions.
void renew_leaves(const GrowTask& task, int n_threads, const RowsInLeaves& places, GrownTree& tree);

}  // namespace polyleaf
