// Leaf values of losses whose Hessian says nothing (absolute error, quantiles): from the residuals themselves.
#pragma once

#include <functional>
#include <vector>

#include "growth/contract.hpp"
#include "growth/leaf_rows.hpp"

namespace polyleaf {

struct WeightedResidual {
  double residual;
  double weight;
};

// Whether residuals have weights.
bool weighs_residuals(const GrowTask& task);

// The residuals of some outputs in some rows, those without weight left out.
struct LeafResiduals {
  static constexpr std::size_t kMost = 8;  // outputs that are read together: their numbers share a cache line
  std::vector<double> plain[kMost];        // where they have no weights
  std::vector<WeightedResidual> weighed[kMost];

  void take(const GrowTask& task, const std::uint32_t* rows, std::size_t n, const std::size_t* outputs,
            std::size_t n_outputs);
};

// Place of a value that is renewed.
struct RenewedValue {
  std::size_t leaf, output;
  std::size_t at;  // among the values of the tree
};
// Those of a tree, leaf by leaf; and how one is set.
std::vector<RenewedValue> renewed_values(const GrowTask& task, std::size_t n_leaves, const GrownTree& tree);
void set_renewed(const GrowTask& task, const RenewedValue& place, double quantile, GrownTree& tree);

// Calls visit(v, residuals, k) for each of the values, in any order and by several threads: its residuals are those in
// place k.
void each_leaf_of(const std::vector<RenewedValue>& values, const GrowTask& task, const RowsInLeaves& places,
                  int n_threads, const std::function<void(std::size_t, LeafResiduals&, std::size_t)>& visit);

// The value that minimises the weighted sum of pinball losses: of the residuals in ascending order the first whose
// cumulative weight reaches level * total. Where it equals that (but for kRounding), everything up to the next residual
// is a minimum, and the value is halfway. Equal residuals are one, of their weights together. 0 without residuals. The
// vector is left in another order.
double residual_quantile(std::vector<double>& residuals, double level);
double residual_quantile(std::vector<WeightedResidual>& residuals, double level);

// Replaces the values of the outputs that are renewed, before the tree is added to the predictions.
void renew_leaves(const GrowTask& task, int n_threads, const RowsInLeaves& places, GrownTree& tree);

}  // namespace polyleaf
