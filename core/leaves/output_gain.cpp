#include "leaves/output_gain.hpp"

#include <algorithm>

#include "rules/scoring.hpp"

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
  // Per node and output, children before their parents.
  std::vector<double> gradient(n_nodes * d), hessian(n_nodes * d), term(n_nodes * d);
  for (std::size_t i = n_nodes; i-- > 0;) {
    const Node& node = *order.nodes[i];
    double* own_gradient = gradient.data() + i * d;
    double* own_hessian = hessian.data() + i * d;
    if (tree.left[i] < 0) {
      const double* sum = leaf_sums + static_cast<std::size_t>(tree.leaf[i]) * stride;
      std::copy(sum, sum + d, own_gradient);
      if (terms.own_hessian)
        std::copy(sum + d, sum + 2 * d, own_hessian);
      else
        std::fill(own_hessian, own_hessian + d, sum[2 * d]);
    } else {
      const std::size_t left = static_cast<std::size_t>(tree.left[i]) * d;
      for (std::size_t j = 0; j < d; ++j) {
        own_gradient[j] = gradient[left + j] + gradient[left + d + j];
        own_hessian[j] = hessian[left + j] + hessian[left + d + j];
      }
    }
    for (std::size_t j = 0; j < d; ++j) {
      const double alpha = terms.reg_alpha / terms.unit[j];
      const double denominator = own_hessian[j] + terms.reg_lambda;
      double value = leaf_value(soft_threshold(own_gradient[j], alpha), denominator);
      if (!node.bounds.low.empty())
        value = bounded(value, node.bounds.low[j] * terms.bound_unit[j], node.bounds.high[j] * terms.bound_unit[j]);
      const bool speaks = !sparse || std::binary_search(node.leaf_outputs.begin(), node.leaf_outputs.end(),
                                                        static_cast<std::int32_t>(j));
      term[i * d + j] = speaks ? value_term(own_gradient[j], denominator, alpha, value) : 0.0;
    }
    if (tree.left[i] < 0) continue;
    const double* of_left = term.data() + static_cast<std::size_t>(tree.left[i]) * d;
    double* out = tree.output_gain.data() + row[i] * d;
    for (std::size_t j = 0; j < d; ++j) out[j] += 0.5 * (of_left[j] + of_left[d + j] - term[i * d + j]);
  }
}

}  // namespace polyleaf
