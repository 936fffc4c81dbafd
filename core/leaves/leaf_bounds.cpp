#include "leaves/leaf_bounds.hpp"

#include <algorithm>

#include "leaves/leaf_values.hpp"

namespace polyleaf {

// Values are stored times the learning rate and as float32; both keep the order of any two numbers, so that bounds
// which are stored the same way still part the leaves.
void clip_leaves(const Order& order, const std::vector<double>& unit, double learning_rate, GrownTree& tree) {
  const std::size_t d = unit.size();
  for (std::size_t i = 0; i < order.nodes.size(); ++i) {
    if (tree.leaf[i] < 0) continue;
    const ValueBounds& bounds = order.nodes[i]->bounds;
    float* value = tree.values.data() + static_cast<std::size_t>(tree.leaf[i]) * d;
    for (std::size_t j = 0; j < d; ++j) {
      const double factor = learning_rate * unit[j];
      value[j] = std::clamp(value[j], stored_value(factor * bounds.low[j]), stored_value(factor * bounds.high[j]));
    }
  }
}

}  // namespace polyleaf
