#include "bindings/features.hpp"
#include "bindings/rooms.hpp"
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

nb::dict grow_sparse(SparseLabels& labels, const BinnedMatrix& matrix, const std::optional<Vector<double>>& weight,
                     const std::optional<Vector<std::uint32_t>>& rows,
                     const std::optional<Vector<std::uint8_t>>& feature_mask, double level_share, double node_share,
                     std::uint64_t sample_key, const std::optional<Vector<std::int64_t>>& group_begin,
                     const std::optional<Vector<std::int32_t>>& group_feature, int max_depth, int max_leaves,
                     int min_samples_leaf, double min_split_gain, double min_child_weight, double reg_lambda,
                     double reg_alpha, int sparse_leaves, bool restricted, double learning_rate, int n_threads) {
  expect(matrix.n_rows == labels.n_rows(), "the table has another number of rows");
  expect(sparse_leaves >= 1 && static_cast<std::size_t>(sparse_leaves) <= labels.n_outputs(),
         "sparse_leaves must lie in 1..outputs");
  GrowTask task;
  task.matrix = &matrix;
  task.leaf_gradients.weight = data_or_null(weight, matrix.n_rows, "weight: one value per row");
  if (rows) {
    task.sample.rows = checked_rows(*rows, matrix);
    task.sample.n_rows = rows->shape(0);
  }
  task.features = {data_or_null(feature_mask, matrix.features.size(), "feature_mask: one value per feature"),
                   level_share, node_share, sample_key, groups_of(group_begin, group_feature, matrix)};
  GrowSettings settings;
  settings.rules = {max_depth, max_leaves, min_samples_leaf, min_split_gain, min_child_weight, reg_lambda, reg_alpha};
  settings.sparse = {sparse_leaves, restricted};
  task.learning_rate = learning_rate;
  settings.n_threads = n_threads;
  GrownTree tree;
  {
    nb::gil_scoped_release release;
    std::vector<std::uint32_t> leaf(matrix.n_rows);
    task.delivery.leaf_of_row = leaf.data();
    tree = LabelSparseGrower(labels).grow(task, settings);
    const std::vector<std::int64_t> value_begin = [&] {
      std::vector<std::int64_t> out;
      for (const std::uint32_t one : leaf) out.push_back(static_cast<std::int64_t>(one) * sparse_leaves);
      return out;
    }();
    labels.add(value_begin.data(), tree.values.data(), tree.outputs.data(), static_cast<std::size_t>(sparse_leaves),
               n_threads);
  }
  return to_dict(std::move(tree), static_cast<std::size_t>(sparse_leaves));
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

}  // namespace

void bind_label_sparse(nb::module_& m) {
  nb::class_<SparseLabels>(m, "SparseLabels", "Labels and scores of GBDT-sparse, which grows its trees from them.")
      .def(nb::new_(&make_sparse_labels), "row_begin"_a, "label"_a, "n_outputs"_a)
      .def("grow", &grow_sparse, nb::kw_only(), "matrix"_a, "weight"_a.none(), "rows"_a.none(), "feature_mask"_a.none(),
           "level_share"_a, "node_share"_a, "sample_key"_a, "group_begin"_a.none(), "group_feature"_a.none(),
           "max_depth"_a, "max_leaves"_a, "min_samples_leaf"_a, "min_split_gain"_a, "min_child_weight"_a,
           "reg_lambda"_a, "reg_alpha"_a, "sparse_leaves"_a, "restricted"_a, "learning_rate"_a, "n_threads"_a)
      .def("add", &add_to_sparse, "value_begin"_a, "values"_a, "value_output"_a, "width"_a, "n_threads"_a);
}

}  // namespace polyleaf
