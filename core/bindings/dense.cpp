#include "bindings/rooms.hpp"
#include "bindings/task.hpp"
#include "bindings/tree.hpp"
#include "dense/grower.hpp"

namespace polyleaf {
namespace {

// Task and settings are copied: other threads may set them while the tree grows.
nb::dict grow(DenseGrower& grower, const TaskOfArrays& task, GrowSettings settings) {
  const GrowTask checked = task.dense(settings);
  const auto d = static_cast<std::size_t>(checked.leaf_gradients.n_outputs);
  GrownTree tree;
  {
    nb::gil_scoped_release release;
    tree = grower.grow(checked, settings);
  }
  const std::size_t width = tree.outputs.empty() ? d : static_cast<std::size_t>(settings.sparse.k);
  return to_dict_with_gains(std::move(tree), width, checked.output_gains ? d : 0);
}

}  // namespace

void bind_dense(nb::module_& m) {
  nb::class_<DenseGrower>(m, "DenseGrower", "Grows trees on one table and keeps its work space between rounds.")
      .def(nb::init<>())
      .def("grow", &grow, "task"_a, "settings"_a);
}

}  // namespace polyleaf
