#include "bindings/rooms.hpp"
#include "bindings/task.hpp"
#include "bindings/tree.hpp"
#include "label_sparse/grower.hpp"

namespace polyleaf {
namespace {

SparseLabels make_sparse_labels(const Vector<std::int64_t>& row_begin, const Vector<std::int32_t>& label,
                                std::size_t n_outputs) {
  const std::size_t n_rows = row_begin.shape(0) - 1;
  expect(row_begin.shape(0) > 1 && row_begin.data()[0] == 0 &&
             row_begin.data()[n_rows] == static_cast<std::int64_t>(label.shape(0)),
         "row_begin does not fit the labels");
  for (std::size_t row = 0; row < n_rows; ++row) {
    expect(row_begin.data()[row] <= row_begin.data()[row + 1], "row_begin must ascend");
    for (std::int64_t e = row_begin.data()[row]; e < row_begin.data()[row + 1]; ++e) {
      expect(label.data()[e] >= 0 && static_cast<std::size_t>(label.data()[e]) < n_outputs, "a label is out of range");
      expect(e == row_begin.data()[row] || label.data()[e - 1] < label.data()[e], "labels of a row must ascend");
    }
  }
  return SparseLabels(n_rows, n_outputs, row_begin.data(), label.data());
}

// Task and settings are copied: other threads may set them while the tree grows.
nb::dict grow(LabelSparseGrower& grower, const TaskOfArrays& task, GrowSettings settings) {
  const SparseLabels& labels = grower.labels();
  const GrowTask checked = task.label_sparse(settings, labels.n_rows(), labels.n_outputs());
  GrownTree tree;
  {
    nb::gil_scoped_release release;
    tree = grower.grow(checked, settings);
  }
  return to_dict(std::move(tree), static_cast<std::size_t>(settings.sparse.k));
}

// A tree of a forest, given by where each row's values begin.
void add_to_sparse(SparseLabels& labels, const Vector<std::int64_t>& value_begin, const Vector<float>& values,
                   const Vector<std::int32_t>& value_output, std::size_t width, int n_threads) {
  expect(value_begin.shape(0) == labels.n_rows(), "value_begin: one value per row");
  expect(value_output.shape(0) == values.shape(0) && width <= values.shape(0), "value_output: one per value");
  const auto last = static_cast<std::int64_t>(values.shape(0) - width);
  for (std::size_t row = 0; row < labels.n_rows(); ++row)
    expect(value_begin.data()[row] >= 0 && value_begin.data()[row] <= last, "a leaf is out of range");
  for (std::size_t i = 0; i < values.shape(0); ++i)
    expect(value_output.data()[i] >= 0 && static_cast<std::size_t>(value_output.data()[i]) < labels.n_outputs(),
           "an output is out of range");
  nb::gil_scoped_release release;
  labels.add(value_begin.data(), values.data(), value_output.data(), width, n_threads);
}

// Compressed rows: where each row begins, the outputs, and their scores, without those that are 0.
nb::tuple scores_of(const SparseLabels& labels) {
  std::vector<std::int64_t> row_begin{0};
  std::vector<std::int32_t> output;
  std::vector<double> score;
  {
    nb::gil_scoped_release release;
    for (std::size_t row = 0; row < labels.n_rows(); ++row) {
      for (const LabelCell& cell : labels.cells(row)) {
        if (cell.score == 0.0) continue;
        output.push_back(cell.output);
        score.push_back(cell.score);
      }
      row_begin.push_back(static_cast<std::int64_t>(output.size()));
    }
  }
  return nb::make_tuple(to_numpy(std::move(row_begin)), to_numpy(std::move(output)), to_numpy(std::move(score)));
}

}  // namespace

void bind_label_sparse(nb::module_& m) {
  nb::class_<SparseLabels>(m, "SparseLabels", "Labels of GBDT-sparse, and their scores.")
      .def(nb::new_(&make_sparse_labels), "row_begin"_a, "label"_a, "n_outputs"_a)
      .def("scores", &scores_of)
      .def("add", &add_to_sparse, "value_begin"_a, "values"_a, "value_output"_a, "width"_a, "n_threads"_a);
  nb::class_<LabelSparseGrower>(m, "LabelSparseGrower", "Grows trees from the gradients of sparse labels.")
      .def(nb::init<const SparseLabels&>(), "labels"_a, nb::keep_alive<1, 2>())
      .def("grow", &grow, "task"_a, "settings"_a);
}

}  // namespace polyleaf
