#include "predict/tree_forest.hpp"

namespace polyleaf {

TreeForest::TreeForest(const GrownTree& tree, std::size_t width, std::int32_t first_output)
    : node_begin_{0, static_cast<std::int64_t>(tree.feature.size())},
      first_output_(first_output),
      width_(static_cast<std::int32_t>(width)) {
  value_begin_.reserve(tree.leaf.size());
  for (const std::int32_t leaf : tree.leaf) value_begin_.push_back(leaf < 0 ? -1 : std::int64_t{leaf} * width_);
  arrays_.n_trees = 1;
  arrays_.n_nodes = tree.feature.size();
  arrays_.node_begin = node_begin_.data();
  arrays_.feature = tree.feature.data();
  arrays_.threshold = tree.threshold.data();
  arrays_.left = tree.left.data();
  arrays_.missing_left = tree.missing_left.data();
  arrays_.category_begin = tree.category_begin.data();
  arrays_.category_bits = tree.category_bits.data();
  arrays_.value_begin = value_begin_.data();
  arrays_.values = tree.values.data();
  if (!tree.outputs.empty()) arrays_.value_output = tree.outputs.data();
  arrays_.tree_output = &first_output_;
  arrays_.tree_width = &width_;
}

}  // namespace polyleaf
