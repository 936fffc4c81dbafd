#include "dense/leaf_filler.hpp"

#include "leaves/leaf_bounds.hpp"
#include "leaves/leaf_values.hpp"
#include "leaves/output_gain.hpp"
#include "leaves/renewed.hpp"
#include "leaves/shared_renewal.hpp"

namespace polyleaf {

std::vector<double> DenseLeafFiller::fill_values(const RowsInLeaves& places, GrownTree& tree) {
  std::vector<double> leaf_sums = fill_leaves(task_, settings_, bounds_, places, tree);
  if (task_.renewal.level != nullptr) {
    if (task_.shard.is_alone())
      renew_leaves(task_, settings_.n_threads, places, tree);
    else
      renew_shared_leaves(task_, settings_.n_threads, places, tree);
  }
  return leaf_sums;
}

void DenseLeafFiller::fill(const Order& order, const RowsInLeaves& places, GrownTree& tree) {
  const std::vector<double> leaf_sums = fill_values(places, tree);
  if (task_.monotone != nullptr) clip_leaves(order, payload_.gradient_unit, task_.learning_rate, tree);
  if (task_.output_gains) {
    const LeafGradients& in = task_.leaf_gradients;
    share_gains({in.n_outputs, in.unit, has_own_hessian(in), settings_.rules.reg_lambda, settings_.rules.reg_alpha,
                 payload_.gradient_unit.data()},
                order, leaf_sums.data(), tree);
  }
}

}  // namespace polyleaf
