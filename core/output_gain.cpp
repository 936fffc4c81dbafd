#include "output_gain.hpp"

#include <algorithm>

#include "rules.hpp"

namespace polyleaf {

void share_gains(const GainTerms& terms, const Order& order, const double* leaf_sums, GrownTree& tree) {
  const auto d = static_cast<std::size_t>(terms.n_outputs);
  const std::size_t n_nodes = tree.left.size();
  const std::size_t stride = 2 * d + 1;
  tree.gain_feature = tree.feature;
  std::sort(tree.gain_feature.begin(), tree.gain_feature.end());
  tree.gain_feature.erase(std::unique(tree.gain_feature.begin(), tree.gain_feature.end()), tree.gain_feature.end());
  tree.gain_feature.erase(tree.gain_feature.begin());  // a leaf's, -1
  std::vector<std::size_t> row(n_nodes, 0);
  for (std::size_t i = 0; i < n_nodes; ++i)
    row[i] =
        static_cast<std::size_t>(std::lower_bound(tree.gain_feature.begin(), tree.gain_feature.end(), tree.feature[i]) -
                                 tree.gain_feature.begin());
  tree.output_gain.assign(tree.gain_feature.size() * d, 0.0);

  const bool sparse = !tree.outputs.empty();
  std::vector<double> gradient(n_nodes), hessian(n_nodes), term(n_nodes);
  for (std::size_t j = 0; j < d; ++j) {
    const double alpha = terms.reg_alpha / terms.unit[j];
    for (std::size_t i = n_nodes; i-- > 0;) {  // children before their parents
      if (tree.left[i] < 0) {
        const double* sum = leaf_sums + static_cast<std::size_t>(tree.leaf[i]) * stride;
        gradient[i] = sum[j];
        hessian[i] = terms.own_hessian ? sum[d + j] : sum[2 * d];
      } else {
        const auto left = static_cast<std::size_t>(tree.left[i]);
        gradient[i] = gradient[left] + gradient[left + 1];
        hessian[i] = hessian[left] + hessian[left + 1];
      }
      const Node& node = *order.nodes[i];
      const double denominator = hessian[i] + terms.reg_lambda;
      double value = leaf_value(soft_threshold(gradient[i], alpha), denominator);
      if (!node.bounds.low.empty())
        value = bounded(value, node.bounds.low[j] * terms.bound_unit[j], node.bounds.high[j] * terms.bound_unit[j]);
      const bool held = !sparse || std::binary_search(node.held.begin(), node.held.end(), static_cast<std::int32_t>(j));
      term[i] = held ? value_term(gradient[i], denominator, alpha, value) : 0.0;
      if (tree.left[i] < 0) continue;
      const auto left = static_cast<std::size_t>(tree.left[i]);
      tree.output_gain[row[i] * d + j] += 0.5 * (term[left] + term[left + 1] - term[i]);
    }
  }
}

}  // namespace polyleaf
