#include "label_sparse/leaf_filler.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/threads.hpp"
#include "leaves/leaf_values.hpp"
#include "quantize/bounds.hpp"
#include "rules/exact_sum.hpp"

namespace polyleaf {

void LabelLeafFiller::fill(const Order&, const RowsInLeaves& places, GrownTree& tree) {
  const auto width = static_cast<std::size_t>(settings_.sparse.k);
  const double* weights = task_.leaf_gradients.weight;
  tree.values.assign(places.leaves.size() * width, 0.0f);
  tree.cover.assign(tree.feature.size(), 0.0);
  double largest_weight = 1.0, largest = 0.0;  // of the rows, and of their gradients
  if (weights != nullptr) largest_weight = *std::max_element(weights, weights + labels_.n_rows());
  for (std::size_t row = 0; row < labels_.n_rows(); ++row)
    for (const LabelCell& cell : labels_.cells(row))
      largest = std::max(largest, std::fabs(static_cast<double>(cell.gradient())));
  const auto n_rows = static_cast<double>(labels_.n_rows());
  SumGrid grid = sum_grid(largest * largest_weight, n_rows), weight_grid = sum_grid(largest_weight, n_rows);
  const bool in_order = weights != nullptr && span_widely(weights, labels_.n_rows());
  if (in_order) grid = weight_grid = {0.0, 0.0};  // plain sums
  parallel_for(settings_.n_threads, places.leaves.size(), [&](std::size_t leaf, int) {
    const std::int32_t* outputs = tree.outputs.data() + leaf * width;
    std::vector<ExactSum> gradient(width);
    ExactSum total_weight;
    std::vector<std::uint32_t> rows(places.rows + places.leaves[leaf].begin, places.rows + places.leaves[leaf].end);
    // They may have been parted by a split that the tree does not have, and which of those there are hangs on threads.
    if (in_order) std::sort(rows.begin(), rows.end());
    for (const std::uint32_t row : rows) {
      const double weight = weights != nullptr ? weights[row] : 1.0;
      total_weight.add(weight, weight_grid);
      for (const LabelCell& cell : labels_.cells(row)) {
        const std::int32_t* found = std::lower_bound(outputs, outputs + width, cell.output);
        if (found != outputs + width && *found == cell.output)
          gradient[static_cast<std::size_t>(found - outputs)].add(weight * static_cast<double>(cell.gradient()), grid);
      }
    }
    const double hessian = total_weight.value();
    tree.cover[places.leaves[leaf].node] = hessian;
    for (std::size_t i = 0; i < width; ++i) {
      const double shrunk = soft_threshold(gradient[i].value(), settings_.rules.reg_alpha);
      tree.values[leaf * width + i] =
          stored_value(task_.learning_rate * leaf_value(shrunk, hessian + settings_.rules.reg_lambda));
    }
  });
}

}  // namespace polyleaf
