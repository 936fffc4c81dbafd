#include <nanobind/stl/tuple.h>

#include <cstring>
#include <tuple>
#include <vector>

#include "bindings/features.hpp"
#include "bindings/rooms.hpp"
#include "bindings/tree.hpp"
#include "dense/grower.hpp"
#include "growth/visited_tree.hpp"
#include "leaves/visited_leaves.hpp"
#include "quantize/fixed_point.hpp"
#include "quantize/payload.hpp"

namespace polyleaf {
namespace {

template <class Kind>
Kind gradients_of(const BinnedMatrix& matrix, const RowMatrix<float>& gradient,
                  const std::optional<RowMatrix<float>>& hessian, const std::optional<Vector<double>>& weight) {
  Kind out;
  const std::size_t d = gradient.shape(1);
  expect(d > 0, "no outputs");
  expect_outputs(matrix, gradient.shape(0), d, gradient.stride(1), d);
  out.gradient = gradient.data();
  out.gradient_stride = static_cast<std::size_t>(gradient.stride(0));
  if (hessian) {
    expect_outputs(matrix, hessian->shape(0), hessian->shape(1), hessian->stride(1), d);
    out.hessian = hessian->data();
    out.hessian_stride = static_cast<std::size_t>(hessian->stride(0));
  }
  out.weight = data_or_null(weight, matrix.n_rows, "weight: one value per row");
  out.n_rows = matrix.n_rows;
  out.n_outputs = static_cast<int>(d);
  return out;
}

Renewal renewal_of(const BinnedMatrix& matrix, std::size_t d, const Vector<double>& level, const Matrix<double>& y,
                   const Vector<std::int32_t>& column, const std::optional<RowMatrix<double>>& cell_weight) {
  Renewal out;
  expect(level.shape(0) == d && column.shape(0) == d && y.shape(0) == matrix.n_rows,
         "renewed leaves: a level and a column per output, targets of all rows");
  for (std::size_t j = 0; j < d; ++j)
    expect(column.data()[j] >= 0 && static_cast<std::size_t>(column.data()[j]) < y.shape(1),
           "a column is out of range");
  out.level = level.data();
  out.y = y.data();
  out.y_stride = y.shape(1);
  out.column = column.data();
  if (cell_weight) {
    expect_outputs(matrix, cell_weight->shape(0), cell_weight->shape(1), cell_weight->stride(1), d);
    out.cell_weight = cell_weight->data();
    out.cell_stride = static_cast<std::size_t>(cell_weight->stride(0));
  }
  return out;
}

nb::dict grow(DenseGrower& grower, const BinnedMatrix& matrix, const RowMatrix<float>& gradient,
              const std::optional<RowMatrix<float>>& hessian, const std::string& hessian_rule,
              const std::optional<Vector<double>>& weight, const Vector<double>& unit,
              const RowMatrix<float>& structure_gradient, const std::optional<RowMatrix<float>>& structure_hessian,
              const std::optional<Vector<float>>& structure_curvature,
              const std::optional<Vector<double>>& structure_weight, const Vector<double>& gain_weight,
              const Vector<double>& structure_unit, const std::optional<Vector<std::uint32_t>>& rows,
              bool all_rows_in_leaves, const std::optional<Vector<std::uint8_t>>& feature_mask, double level_share,
              double node_share, std::uint64_t sample_key, const std::optional<Vector<std::int64_t>>& group_begin,
              const std::optional<Vector<std::int32_t>>& group_feature,
              const std::optional<Matrix<std::int8_t>>& monotone,
              std::optional<nb::ndarray<double, nb::ndim<2>, nb::device::cpu>> raw,
              std::optional<OutVector<std::uint32_t>> leaf_of_row, int max_depth, int max_leaves, int min_samples_leaf,
              double min_split_gain, double min_child_weight, double reg_lambda, double reg_alpha, int sparse_leaves,
              bool restricted, const std::string& hessian_mode, const std::optional<Vector<std::int32_t>>& label,
              const std::optional<Vector<double>>& renew_level, const std::optional<Matrix<double>>& renew_y,
              const std::optional<Vector<std::int32_t>>& renew_column,
              const std::optional<RowMatrix<double>>& renew_weight, double learning_rate, std::size_t histogram_bytes,
              bool output_gains, int n_threads) {
  const std::size_t d = gradient.shape(1);
  GrowTask task;
  task.matrix = &matrix;
  task.leaf_gradients = gradients_of<LeafGradients>(matrix, gradient, hessian, weight);
  task.leaf_gradients.hessian_rule = term_of(hessian_rule);
  task.split_gradients = gradients_of<SplitGradients>(matrix, structure_gradient, structure_hessian, structure_weight);
  task.split_gradients.curvature = data_or_null(structure_curvature, matrix.n_rows, "curvature: one value per row");
  const std::size_t k = structure_gradient.shape(1);
  expect(gain_weight.shape(0) == k && structure_unit.shape(0) == k && unit.shape(0) == d,
         "gain_weight and unit: one value per output");
  task.split_gradients.gain_weight = gain_weight.data();
  task.split_gradients.unit = structure_unit.data();
  task.leaf_gradients.unit = unit.data();
  task.sample.all_rows_in_leaves = all_rows_in_leaves;
  if (rows) {
    task.sample.rows = checked_rows(*rows, matrix);
    task.sample.n_rows = rows->shape(0);
  }
  task.features = {data_or_null(feature_mask, matrix.features.size(), "feature_mask: one value per feature"),
                   level_share, node_share, sample_key, groups_of(group_begin, group_feature, matrix)};
  if (monotone) {
    expect(monotone->shape(0) == matrix.features.size() && monotone->shape(1) == d && k == d,
           "monotone: one sign per feature and output, and no sketch");
    task.monotone = monotone->data();
  }
  if (raw) {
    expect_outputs(matrix, raw->shape(0), raw->shape(1), raw->stride(1), d);
    task.delivery.raw = raw->data();
    task.delivery.raw_stride = static_cast<std::size_t>(raw->stride(0));
  }
  if (leaf_of_row) {
    expect(leaf_of_row->shape(0) == matrix.n_rows, "leaf_of_row: one number per row");
    task.delivery.leaf_of_row = leaf_of_row->data();
  }
  if (renew_level) {
    expect(raw.has_value() && renew_y.has_value() && renew_column.has_value(),
           "renewed leaves need predictions, targets and their columns");
    task.renewal = renewal_of(matrix, d, *renew_level, *renew_y, *renew_column, renew_weight);
  }
  GrowSettings settings;
  settings.rules = {max_depth, max_leaves, min_samples_leaf, min_split_gain, min_child_weight, reg_lambda, reg_alpha};
  expect(sparse_leaves >= 0 && sparse_leaves <= static_cast<int>(d), "sparse_leaves must lie in 0..outputs");
  expect(sparse_leaves == 0 || k == d, "sparse leaves need all outputs");
  expect(!monotone || (sparse_leaves == 0 && hessian_mode != "exact" && hessian_mode != "exact_leaf"),
         "monotone constraints need leaves of all outputs and a diagonal Hessian");
  settings.sparse = {sparse_leaves, restricted};
  if (hessian_mode == "exact_leaf") settings.exact = ExactHessian::kLeaves;
  if (hessian_mode == "exact") settings.exact = ExactHessian::kEverywhere;
  if (settings.exact != ExactHessian::kNowhere) {
    expect(label.has_value() && sparse_leaves == 0, "an exact Hessian needs the classes, and leaves of all outputs");
    expect(hessian_mode != "exact" || k == d, "an exact Hessian in splits needs all outputs");
    task.leaf_gradients.label = data_or_null(label, matrix.n_rows, "label: one value per row");
    task.split_gradients.label = task.leaf_gradients.label;
    for (std::size_t i = 0; i < matrix.n_rows; ++i)
      expect(task.leaf_gradients.label[i] >= 0 && static_cast<std::size_t>(task.leaf_gradients.label[i]) < d,
             "a label is out of range");
  }
  task.learning_rate = learning_rate;
  settings.histogram_bytes = histogram_bytes;
  expect(!output_gains || settings.exact != ExactHessian::kEverywhere, "a full Hessian's gains are of all outputs");
  task.output_gains = output_gains;
  settings.n_threads = n_threads;
  GrownTree tree;
  {
    nb::gil_scoped_release release;
    tree = grower.grow(task, settings);
  }
  const std::size_t width = tree.outputs.empty() ? d : static_cast<std::size_t>(sparse_leaves);
  return to_dict_with_gains(std::move(tree), width, output_gains ? d : 0);
}

VisitedTree make_visited_tree(const BinnedMatrix& matrix, const Vector<std::uint8_t>& nodes, int max_leaves) {
  const std::size_t n_nodes = nodes.shape(0) / sizeof(VisitedNode);
  expect(n_nodes > 0 && nodes.shape(0) % sizeof(VisitedNode) == 0, "the size of the nodes");
  std::vector<VisitedNode> copied(n_nodes);
  std::memcpy(copied.data(), nodes.data(), nodes.shape(0));
  std::vector<char> is_child(n_nodes, 0);  // nodes with two parents could make a tree of any size
  for (std::size_t i = 0; i < n_nodes; ++i) {
    const VisitedNode& node = copied[i];
    expect(node.begin <= node.end, "the rows of a node");
    if (node.left < 0) continue;
    const auto left = static_cast<std::size_t>(node.left);
    expect(left > i && left + 1 < n_nodes && !is_child[left] && !is_child[left + 1], "a child is out of place");
    is_child[left] = is_child[left + 1] = 1;
    expect(node.feature >= 0 && static_cast<std::size_t>(node.feature) < matrix.features.size() && node.bin >= 0,
           "a feature or bin is out of range");
  }
  return VisitedTree(matrix, copied, max_leaves);
}

nb::object leaf_places(const VisitedTree& visited) {
  std::vector<std::uint32_t> places;
  for (const LeafRows& leaf : visited.leaves())
    places.insert(places.end(), {static_cast<std::uint32_t>(leaf.begin), static_cast<std::uint32_t>(leaf.end)});
  return to_numpy(std::move(places), 2);
}

nb::dict finish_visited(const VisitedTree& visited, const Matrix<float>& values, const Vector<double>& cover,
                        const std::optional<Vector<std::int64_t>>& all_rows,
                        const std::optional<Matrix<double>>& leaf_sums, bool own_hessian, const Vector<double>& unit,
                        double reg_lambda, double reg_alpha) {
  const std::size_t n_leaves = visited.leaves().size(), d = values.shape(1);
  expect(d > 0 && values.shape(0) == n_leaves && unit.shape(0) == d, "values: leaves x outputs");
  expect(cover.shape(0) == n_leaves, "cover: one value per leaf");
  if (leaf_sums)
    expect(leaf_sums->shape(0) == n_leaves && leaf_sums->shape(1) == 2 * d + 1, "leaf_sums: leaves x (2 outputs + 1)");
  const GainTerms terms{static_cast<int>(d), unit.data(), own_hessian, reg_lambda, reg_alpha, nullptr};
  const VisitedLeaves leaves{values.data(), cover.data(),
                             data_or_null(all_rows, n_leaves, "all_rows: one value per leaf"),
                             leaf_sums ? leaf_sums->data() : nullptr};
  GrownTree tree = finish_tree(visited, leaves, terms);
  return to_dict_with_gains(std::move(tree), d, leaf_sums ? d : 0);
}

}  // namespace

void bind_growth(nb::module_& m) {
  nb::class_<DenseGrower>(m, "TreeGrower", "Grows trees on one table and keeps its work space between rounds.")
      .def(nb::init<>())
      .def("grow", &grow, nb::kw_only(), "matrix"_a, "gradient"_a, "hessian"_a.none(), "hessian_rule"_a,
           "weight"_a.none(), "unit"_a, "structure_gradient"_a, "structure_hessian"_a.none(),
           "structure_curvature"_a.none(), "structure_weight"_a.none(), "gain_weight"_a, "structure_unit"_a,
           "rows"_a.none(), "all_rows_in_leaves"_a, "feature_mask"_a.none(), "level_share"_a, "node_share"_a,
           "sample_key"_a, "group_begin"_a.none(), "group_feature"_a.none(), "monotone"_a.none(),
           "raw"_a.noconvert().none(), "leaf_of_row"_a.noconvert().none(), "max_depth"_a, "max_leaves"_a,
           "min_samples_leaf"_a, "min_split_gain"_a, "min_child_weight"_a, "reg_lambda"_a, "reg_alpha"_a,
           "sparse_leaves"_a, "restricted"_a, "hessian_mode"_a, "label"_a.none(), "renew_level"_a.none(),
           "renew_y"_a.none(), "renew_column"_a.none(), "renew_weight"_a.none(), "learning_rate"_a, "histogram_bytes"_a,
           "output_gains"_a, "n_threads"_a);

  m.def(
      "fixed_point",
      [](const std::optional<Vector<double>>& weight, std::size_t n_rows, int n_outputs, bool diagonal, bool shared) {
        expect(n_outputs > 0, "n_outputs: at least 1");
        const double* weights = data_or_null(weight, n_rows, "weight: one value per row");
        const HessianKind kind = diagonal ? HessianKind::kDiagonal
                                 : shared ? HessianKind::kShared
                                          : HessianKind::kCount;
        const PayloadLayout layout = lay_out_payload(n_outputs, kind, n_rows, weights != nullptr);
        const FixedPoint grid(weights, n_rows, layout.sum_bits(), layout.packed);
        return std::make_tuple(grid.limit, grid.weight_unit, grid.unit(grid.total_weight), layout.packed);
      },
      "weight"_a.none(), "n_rows"_a, "n_outputs"_a, "diagonal"_a, "shared"_a,
      "Largest sum of integers; unit of the weights, and of their sum; whether numbers are rounded at random.");
  m.attr("VISITED_NODE_BYTES") = sizeof(VisitedNode);
  nb::class_<VisitedTree>(m, "VisitedTree", "The best-first tree of nodes that a device has visited.")
      .def(nb::new_(&make_visited_tree), "matrix"_a, "nodes"_a, "max_leaves"_a, nb::keep_alive<1, 2>())
      .def("leaf_rows", &leaf_places, "First and last place of each leaf's rows, of shape (leaves, 2).")
      .def(
          "routes", [](const VisitedTree& tree) { return to_dict(tree.by_counts(), 1); },
          "The tree without values; missing values that a split did not see go with most rows.")
      .def("finish", &finish_visited, nb::kw_only(), "values"_a, "cover"_a, "all_rows"_a.none(), "leaf_sums"_a.none(),
           "own_hessian"_a, "unit"_a, "reg_lambda"_a, "reg_alpha"_a);
}

}  // namespace polyleaf
