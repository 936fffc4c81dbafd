#include "bindings/kept_tree.hpp"
#include "bindings/rooms.hpp"
#include "bindings/task.hpp"
#include "dense/grower.hpp"

namespace polyleaf {
namespace {

// Task and settings are copied: other threads may set them while the tree grows.
KeptTree grow(DenseGrower& grower, const TaskOfArrays& task, GrowSettings settings) {
  const GrowTask checked = task.dense(settings);
  const auto d = static_cast<std::size_t>(checked.leaf_gradients.n_outputs);
  GrownTree tree;
  {
    nb::gil_scoped_release release;
    tree = grower.grow(checked, settings);
  }
  const std::size_t width = tree.outputs.empty() ? d : static_cast<std::size_t>(settings.sparse.k);
  return {std::move(tree), width, d, checked.output_gains};
}

// Whether every split has its place in the table, and every leaf its number.
bool fits(const GrownTree& tree, const BinnedMatrix& matrix) {
  const std::size_t n_nodes = tree.left.size();
  std::int32_t n_leaves = 0;
  for (std::size_t i = 0; i < n_nodes; ++i) {
    if (tree.left[i] < 0) {
      if (tree.leaf[i] != n_leaves++) return false;
      continue;
    }
    const auto left = static_cast<std::size_t>(tree.left[i]);  // behind its parent: no way goes round in circles
    if (left <= i || left + 1 >= n_nodes || tree.feature[i] < 0 || tree.bin[i] < 0) return false;
    const auto feature = static_cast<std::size_t>(tree.feature[i]);
    const std::int64_t n_words = tree.category_begin[i + 1] - tree.category_begin[i];
    if (feature >= matrix.features.size() || (n_words > 0 && !matrix.features[feature].categorical)) return false;
  }
  return n_leaves > 0 && tree.outputs.size() % static_cast<std::size_t>(n_leaves) == 0;
}

KeptTree refill(DenseGrower& grower, const TaskOfArrays& task, GrowSettings settings, const KeptTree& kept) {
  const GrowTask checked = task.of_leaves(settings);
  const auto d = static_cast<std::size_t>(checked.leaf_gradients.n_outputs);
  expect(kept.n_outputs == d && fits(kept.tree, *checked.matrix), "tree: not of this table and these outputs");
  KeptTree out{{}, kept.width, d, kept.has_gains};
  {
    nb::gil_scoped_release release;
    out.tree = grower.refill(checked, settings, kept.tree);
  }
  return out;
}

}  // namespace

void bind_dense(nb::module_& m) {
  nb::class_<DenseGrower>(m, "DenseGrower", "Grows trees on one table and keeps its work space between rounds.")
      .def(nb::init<>())
      .def("grow", &grow, "task"_a, "settings"_a)
      .def("refill", &refill, "task"_a, "settings"_a, "tree"_a,
           "The same splits; leaf values, covers and counts from the task, and all rows of its table.");
}

}  // namespace polyleaf
