// What Python sees of the core. Arguments are checked in Python; here only what memory safety needs is checked again.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "base/threads.hpp"
#include "gradients/losses.hpp"
#include "growth/grower.hpp"
#include "growth/visited_tree.hpp"
#include "kernels/kernels.hpp"
#include "label_sparse/labels.hpp"
#include "predict/predictor.hpp"
#include "quantize/fixed_point.hpp"
#include "quantize/payload.hpp"
#include "table/binned_matrix.hpp"
#include "table/cuts.hpp"
#include "table/infinity.hpp"
#include "table/take_rows.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace polyleaf {
namespace {

using Table = nb::ndarray<nb::ro, nb::device::cpu>;
template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using RowMatrix = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;  // rows may be apart
template <class T>
using OutVector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using OutMatrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

MatrixView view_of(const Table& table) {
  if (table.ndim() != 2) throw std::invalid_argument("expected a table of two dimensions");
  MatrixView view;
  const nb::dlpack::dtype dtype = table.dtype();
  const auto is = [&](nb::dlpack::dtype_code code, int bits) {
    return dtype.code == static_cast<std::uint8_t>(code) && dtype.bits == bits && dtype.lanes == 1;
  };
  using Code = nb::dlpack::dtype_code;
  if (is(Code::Float, 32))
    view.dtype = DType::f32;
  else if (is(Code::Float, 64))
    view.dtype = DType::f64;
  else if (is(Code::Int, 8))
    view.dtype = DType::i8;
  else if (is(Code::Int, 16))
    view.dtype = DType::i16;
  else if (is(Code::Int, 32))
    view.dtype = DType::i32;
  else if (is(Code::Int, 64))
    view.dtype = DType::i64;
  else if (is(Code::UInt, 8) || is(Code::Bool, 8))
    view.dtype = DType::u8;
  else if (is(Code::UInt, 16))
    view.dtype = DType::u16;
  else if (is(Code::UInt, 32))
    view.dtype = DType::u32;
  else if (is(Code::UInt, 64))
    view.dtype = DType::u64;
  else
    throw std::invalid_argument("the table's dtype is not one of bool, integers, float32, float64");
  const auto size = static_cast<std::ptrdiff_t>(dtype.bits / 8);
  view.data = static_cast<const char*>(table.data());
  view.n_rows = table.shape(0);
  view.n_columns = table.shape(1);
  view.row_stride = table.stride(0) * size;
  view.column_stride = table.stride(1) * size;
  return view;
}

// Hands a vector over to NumPy without a copy.
template <class T>
nb::object to_numpy(std::vector<T>&& values, std::size_t columns = 0) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  T* data = owned->data();
  const std::size_t size = owned->size();
  nb::capsule owner(owned.release(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  if (columns == 0) return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, owner));
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<2>>(data, {size / columns, columns}, owner));
}

void expect(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

template <class T>
const T* data_or_null(const std::optional<Vector<T>>& vector, std::size_t size, const char* message) {
  if (!vector) return nullptr;
  expect(vector->shape(0) == size, message);
  return vector->data();
}

BinnedMatrix bin_table(const Table& table, const std::optional<Vector<double>>& weight, std::optional<int> max_bins,
                       int n_threads, std::size_t first_column,
                       const std::optional<Vector<std::uint8_t>>& categorical) {
  MatrixView x = view_of(table);
  x.first_column = first_column;
  const double* w = data_or_null(weight, x.n_rows, "weight: one value per row");
  const std::uint8_t* categories = data_or_null(categorical, x.n_columns, "categorical: one value per feature");
  expect(x.n_rows > 0 && x.n_columns > 0, "the table is empty");
  expect(x.n_rows <= 0x1fffffff, "at most 2^29 - 1 rows");
  expect(!max_bins || (*max_bins >= 2 && *max_bins <= 65534), "max_bins must lie in 2..65534");
  nb::gil_scoped_release release;
  return bin_matrix(x, find_cuts(x, w, max_bins.value_or(0), categories, n_threads), n_threads);
}

nb::object groups_of_features(const BinnedMatrix& matrix) {
  std::vector<std::int32_t> group_of(matrix.features.size(), -1);
  std::int32_t n_groups = 0;
  for (const FeatureTile& tile : matrix.tiles) {
    if (tile.groups.cells.empty()) continue;
    for (std::size_t group = 0; group < tile.groups.size(); ++group, ++n_groups)
      for (std::uint32_t position = tile.groups.first[group]; position < tile.groups.first[group + 1]; ++position)
        group_of[static_cast<std::size_t>(tile.features[position])] = n_groups;
  }
  return to_numpy(std::move(group_of));
}

BinnedMatrix make_table_of_cuts(const nb::list& cuts, const Vector<std::uint8_t>& has_missing) {
  const std::size_t m = has_missing.shape(0);
  expect(m > 0 && cuts.size() == m, "cuts and has_missing: one each per feature");
  std::vector<ColumnCuts> columns(m);
  for (std::size_t f = 0; f < m; ++f) {
    const auto given = nb::cast<Vector<double>>(cuts[f]);
    const double* first = given.data();
    columns[f].cuts.assign(first, first + given.shape(0));
    columns[f].has_missing = has_missing.data()[f] != 0;
    expect(given.shape(0) < kMostDistinct, "at most 65,534 cuts a feature");
    for (std::size_t i = 0; i < given.shape(0); ++i)
      expect(std::isfinite(first[i]) && (i == 0 || first[i - 1] < first[i]), "cuts must be finite and ascend");
  }
  return table_of_cuts(std::move(columns));
}

BinnedMatrix join_parts(const nb::list& parts, int n_threads) {
  std::vector<BinnedMatrix> owned;
  for (nb::handle part : parts) owned.push_back(std::move(nb::cast<BinnedMatrix&>(part)));
  expect(!owned.empty(), "nothing to join");
  for (const BinnedMatrix& part : owned) expect(part.n_rows == owned.front().n_rows, "parts of different rows");
  nb::gil_scoped_release release;
  return join_columns(std::move(owned), n_threads);
}

nb::object encode_table(const Table& table, const BinnedMatrix& matrix, int n_threads) {
  const MatrixView x = view_of(table);
  expect(x.n_columns == matrix.features.size(), "the table has another number of columns");
  std::vector<std::uint16_t> codes;
  {
    nb::gil_scoped_release release;
    codes = encode(x, matrix, n_threads);
  }
  return to_numpy(std::move(codes), x.n_columns);
}

nb::object training_codes(const BinnedMatrix& matrix) {
  const std::size_t m = matrix.features.size();
  std::vector<std::uint16_t> codes(matrix.n_rows * m);
  for (std::size_t row = 0; row < matrix.n_rows; ++row)
    for (std::size_t f = 0; f < m; ++f) codes[row * m + f] = static_cast<std::uint16_t>(matrix.code(row, f));
  return to_numpy(std::move(codes), m);
}

nb::object grouped_codes(const BinnedMatrix& matrix, std::size_t size, int n_threads) {
  expect(size > 0 && size <= 256, "size must lie in 1..256");
  const std::size_t n_groups = (matrix.features.size() + size - 1) / size;
  std::vector<std::uint8_t> codes;
  {
    nb::gil_scoped_release release;
    codes = codes_in_groups(matrix, size, n_threads);
  }
  return to_numpy(std::move(codes), size).attr("reshape")(n_groups, matrix.n_rows, size);
}

nb::object units_of_weights(const Vector<double>& weight) {
  return to_numpy(weight_units(weight.data(), weight.shape(0)));
}

// `width`: values of a leaf.
nb::dict to_dict(GrownTree&& tree, std::size_t width) {
  nb::dict out;
  out["feature"] = to_numpy(std::move(tree.feature));
  out["bin"] = to_numpy(std::move(tree.bin));
  out["threshold"] = to_numpy(std::move(tree.threshold));
  out["missing_left"] = to_numpy(std::move(tree.missing_left));
  out["category_begin"] = to_numpy(std::move(tree.category_begin));
  out["category_bits"] = to_numpy(std::move(tree.category_bits));
  out["left"] = to_numpy(std::move(tree.left));
  out["gain"] = to_numpy(std::move(tree.gain));
  out["cover"] = to_numpy(std::move(tree.cover));
  out["count"] = to_numpy(std::move(tree.count));
  out["leaf"] = to_numpy(std::move(tree.leaf));
  out["values"] = to_numpy(std::move(tree.values), width);
  out["outputs"] = to_numpy(std::move(tree.outputs), width);
  return out;
}

// `width`: values of a leaf. `n_outputs`: those whose shares of the gain are known; 0: of none.
nb::dict to_dict_with_gains(GrownTree&& tree, std::size_t width, std::size_t n_outputs) {
  nb::dict shares;
  if (n_outputs > 0) {
    shares["gain_feature"] = to_numpy(std::move(tree.gain_feature));
    shares["output_gain"] = to_numpy(std::move(tree.output_gain), n_outputs);
  }
  nb::dict out = to_dict(std::move(tree), width);
  out.update(shares);
  return out;
}

const std::uint32_t* checked_rows(const Vector<std::uint32_t>& rows, const BinnedMatrix& matrix) {
  expect(rows.shape(0) > 0, "no rows");
  for (std::size_t i = 0; i < rows.shape(0); ++i) expect(rows.data()[i] < matrix.n_rows, "a row is out of range");
  return rows.data();
}

void expect_outputs(const BinnedMatrix& matrix, std::size_t n_rows, std::size_t n_columns, std::int64_t inner_stride,
                    std::size_t n_outputs) {
  expect(n_rows == matrix.n_rows && n_columns == n_outputs && (inner_stride == 1 || n_outputs == 1),
         "arrays of rows x outputs, outputs side by side");
}

Gradients gradients_of(const BinnedMatrix& matrix, const RowMatrix<float>& gradient,
                       const std::optional<RowMatrix<float>>& hessian, const std::optional<Vector<double>>& weight) {
  Gradients out;
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

// Features are checked; they stand in groups that `begin` tells apart.
InteractionGroups groups_of(const std::optional<Vector<std::int64_t>>& begin,
                            const std::optional<Vector<std::int32_t>>& feature, const BinnedMatrix& matrix) {
  if (!begin || !feature) return {};
  const std::size_t n_groups = begin->shape(0) > 0 ? begin->shape(0) - 1 : 0;
  expect(
      n_groups > 0 && begin->data()[0] == 0 && begin->data()[n_groups] == static_cast<std::int64_t>(feature->shape(0)),
      "the groups do not fit their features");
  for (std::size_t g = 0; g < n_groups; ++g) expect(begin->data()[g] <= begin->data()[g + 1], "groups must ascend");
  for (std::size_t i = 0; i < feature->shape(0); ++i)
    expect(feature->data()[i] >= 0 && static_cast<std::size_t>(feature->data()[i]) < matrix.features.size(),
           "a feature of a group is out of range");
  return {n_groups, begin->data(), feature->data()};
}

Term term_of(const std::string& name) {
  if (name == "square") return Term::kSquare;
  if (name == "p(1-p)") return Term::kPaper;
  if (name == "2p(1-p)") return Term::kTwice;
  if (name == "abs(p-y)") return Term::kAbsolute;
  expect(name == "itself", "unknown term");
  return Term::kItself;
}

// Rows of `values` times a matrix given by its columns (the rows of `columns`), padded with zeros to multiples of 16.
// With `weight` also, per row, the weighted sum of a term of its values, while these are in the cache.
// Sums of the rows' gradients with the arrays they go to.
class Mixtures {
 public:
  Mixtures(Matrix<float> columns, OutMatrix<float> out, std::optional<Vector<double>> share, const std::string& term,
           std::optional<OutVector<double>> sums)
      : columns_(std::move(columns)),
        out_(std::move(out)),
        share_(std::move(share)),
        term_(term_of(term)),
        sums_(std::move(sums)) {
    expect(columns_.shape(1) % 16 == 0 && out_.shape(1) == columns_.shape(0), "the matrix does not fit");
    expect(share_.has_value() == sums_.has_value(), "shares and sums: both or none");
    expect(!sums_ || sums_->shape(0) == out_.shape(0), "arrays differ in size");
  }

  RowMixtures of(std::size_t n_rows, std::size_t n_outputs) {
    expect(out_.shape(0) == n_rows && columns_.shape(1) >= n_outputs && (!share_ || share_->shape(0) == n_outputs),
           "mixtures of other rows or outputs");
    return {columns_.data(),
            columns_.shape(1),
            static_cast<int>(columns_.shape(0)),
            out_.data(),
            share_ ? share_->data() : nullptr,
            term_,
            sums_ ? sums_->data() : nullptr};
  }

  void make(const RowMatrix<float>& values, int n_threads) {
    const std::size_t n = values.shape(0), d = values.shape(1);
    expect(values.stride(1) == 1 || d == 1, "rows are to be in one piece");
    const RowMixtures mixtures = of(n, d);
    nb::gil_scoped_release release;
    mix_rows(mixtures, values.data(), static_cast<std::size_t>(values.stride(0)), n, static_cast<int>(d), n_threads);
  }

 private:
  Matrix<float> columns_;
  OutMatrix<float> out_;
  std::optional<Vector<double>> share_;
  Term term_;
  std::optional<OutVector<double>> sums_;
};

// Per row: the weighted sum of a term of its values.
void weighted_sums(const RowMatrix<float>& values, const Vector<double>& weight, const std::string& term,
                   OutVector<double>& out, int n_threads) {
  constexpr std::size_t kBlockRows = 1024;
  const std::size_t n = values.shape(0), d = values.shape(1);
  expect(weight.shape(0) == d && out.shape(0) == n && (values.stride(1) == 1 || d == 1), "arrays differ in size");
  const Term kind = term_of(term);
  nb::gil_scoped_release release;
  parallel_for(n * d < kParallelWork ? 1 : n_threads, (n + kBlockRows - 1) / kBlockRows, [&](std::size_t block, int) {
    kernels().weighted_sums(values.data(), static_cast<std::size_t>(values.stride(0)), block * kBlockRows,
                            std::min(n, (block + 1) * kBlockRows), static_cast<int>(d), weight.data(), kind,
                            out.data());
  });
}

BinnedMatrix take(const BinnedMatrix& matrix, const Vector<std::uint32_t>& rows, int n_threads) {
  const std::uint32_t* taken = checked_rows(rows, matrix);
  nb::gil_scoped_release release;
  return take_rows(matrix, taken, rows.shape(0), n_threads);
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

nb::dict grow(TreeGrower& grower, const BinnedMatrix& matrix, const RowMatrix<float>& gradient,
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
  task.gradients = gradients_of(matrix, gradient, hessian, weight);
  task.gradients.hessian_rule = term_of(hessian_rule);
  task.structure = gradients_of(matrix, structure_gradient, structure_hessian, structure_weight);
  task.structure.curvature = data_or_null(structure_curvature, matrix.n_rows, "curvature: one value per row");
  const std::size_t k = structure_gradient.shape(1);
  expect(gain_weight.shape(0) == k && structure_unit.shape(0) == k && unit.shape(0) == d,
         "gain_weight and unit: one value per output");
  task.gain_weight = gain_weight.data();
  task.structure_unit = structure_unit.data();
  task.unit = unit.data();
  task.n_rows = matrix.n_rows;
  task.all_rows_in_leaves = all_rows_in_leaves;
  if (rows) {
    task.rows = checked_rows(*rows, matrix);
    task.n_rows = rows->shape(0);
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
    task.raw = raw->data();
    task.raw_stride = static_cast<std::size_t>(raw->stride(0));
  }
  if (leaf_of_row) {
    expect(leaf_of_row->shape(0) == matrix.n_rows, "leaf_of_row: one number per row");
    task.leaf_of_row = leaf_of_row->data();
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
    task.gradients.label = data_or_null(label, matrix.n_rows, "label: one value per row");
    task.structure.label = task.gradients.label;
    for (std::size_t i = 0; i < matrix.n_rows; ++i)
      expect(task.gradients.label[i] >= 0 && static_cast<std::size_t>(task.gradients.label[i]) < d,
             "a label is out of range");
  }
  settings.learning_rate = learning_rate;
  settings.histogram_bytes = histogram_bytes;
  expect(!output_gains || settings.exact != ExactHessian::kEverywhere, "a full Hessian's gains are of all outputs");
  settings.output_gains = output_gains;
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
  GrownTree tree =
      visited.finish(values.data(), cover.data(), data_or_null(all_rows, n_leaves, "all_rows: one value per leaf"),
                     terms, leaf_sums ? leaf_sums->data() : nullptr);
  return to_dict_with_gains(std::move(tree), d, leaf_sums ? d : 0);
}

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
  SparseLabels::Task task;
  task.matrix = &matrix;
  task.weight = data_or_null(weight, matrix.n_rows, "weight: one value per row");
  task.n_rows = matrix.n_rows;
  if (rows) {
    task.rows = checked_rows(*rows, matrix);
    task.n_rows = rows->shape(0);
  }
  task.features = {data_or_null(feature_mask, matrix.features.size(), "feature_mask: one value per feature"),
                   level_share, node_share, sample_key, groups_of(group_begin, group_feature, matrix)};
  GrowSettings settings;
  settings.rules = {max_depth, max_leaves, min_samples_leaf, min_split_gain, min_child_weight, reg_lambda, reg_alpha};
  settings.sparse = {sparse_leaves, restricted};
  settings.learning_rate = learning_rate;
  settings.n_threads = n_threads;
  GrownTree tree;
  {
    nb::gil_scoped_release release;
    tree = labels.grow(task, settings);
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

// Keeps the arrays its predictor points into alive.
class ForestPredictor {
 public:
  ForestPredictor(Vector<std::int64_t> node_begin, Vector<std::int32_t> feature, Vector<double> threshold,
                  Vector<std::int32_t> left, Vector<std::uint8_t> missing_left, Vector<std::int64_t> category_begin,
                  Vector<std::uint32_t> category_bits, Vector<std::int64_t> value_begin, Vector<float> values,
                  Vector<std::int32_t> value_output, Vector<std::int32_t> tree_output, Vector<std::int32_t> tree_width)
      : arrays_(node_begin, feature, threshold, left, missing_left, category_begin, category_bits, value_begin, values,
                value_output, tree_output, tree_width),
        predictor_(arrays(node_begin, feature, threshold, left, missing_left, category_begin, category_bits,
                          value_begin, values, value_output, tree_output, tree_width)),
        n_trees_(tree_output.shape(0)) {}

  void add(const Table& table, std::size_t begin, std::size_t end, OutMatrix<double>& raw, int n_threads) const {
    const MatrixView x = view_of(table);
    expect(begin <= end && end <= n_trees_ && raw.shape(0) == x.n_rows, "trees or rows are out of range");
    nb::gil_scoped_release release;
    predictor_.add(x, begin, end, raw.data(), raw.shape(1), n_threads);
  }

  nb::object apply(const Table& table, std::size_t begin, std::size_t end, int n_threads) const {
    const MatrixView x = view_of(table);
    expect(begin < end && end <= n_trees_, "trees are out of range");
    std::vector<std::int32_t> leaves(x.n_rows * (end - begin));
    {
      nb::gil_scoped_release release;
      predictor_.apply(x, begin, end, leaves.data(), n_threads);
    }
    return to_numpy(std::move(leaves), end - begin);
  }

 private:
  static ForestArrays arrays(const Vector<std::int64_t>& node_begin, const Vector<std::int32_t>& feature,
                             const Vector<double>& threshold, const Vector<std::int32_t>& left,
                             const Vector<std::uint8_t>& missing_left, const Vector<std::int64_t>& category_begin,
                             const Vector<std::uint32_t>& category_bits, const Vector<std::int64_t>& value_begin,
                             const Vector<float>& values, const Vector<std::int32_t>& value_output,
                             const Vector<std::int32_t>& tree_output, const Vector<std::int32_t>& tree_width) {
    ForestArrays out;
    out.n_trees = tree_output.shape(0);
    out.n_nodes = feature.shape(0);
    expect(node_begin.shape(0) == out.n_trees + 1 && tree_width.shape(0) == out.n_trees,
           "arrays of trees differ in size");
    expect(threshold.shape(0) == out.n_nodes && left.shape(0) == out.n_nodes && missing_left.shape(0) == out.n_nodes &&
               value_begin.shape(0) == out.n_nodes,
           "arrays of nodes differ in size");
    expect(category_begin.shape(0) == out.n_nodes + 1 && category_begin.data()[0] == 0 &&
               category_begin.data()[out.n_nodes] == static_cast<std::int64_t>(category_bits.shape(0)),
           "category_begin does not fit the nodes");
    for (std::size_t i = 0; i < out.n_nodes; ++i)
      expect(category_begin.data()[i] <= category_begin.data()[i + 1], "category_begin must ascend");
    out.category_begin = category_begin.data();
    out.category_bits = category_bits.data();
    out.node_begin = node_begin.data();
    out.feature = feature.data();
    out.threshold = threshold.data();
    out.left = left.data();
    out.missing_left = missing_left.data();
    out.value_begin = value_begin.data();
    out.values = values.data();
    expect(value_output.shape(0) == 0 || value_output.shape(0) == values.shape(0), "value_output: one per value");
    if (value_output.shape(0) > 0) out.value_output = value_output.data();
    out.tree_output = tree_output.data();
    out.tree_width = tree_width.data();
    return out;
  }

  std::tuple<Vector<std::int64_t>, Vector<std::int32_t>, Vector<double>, Vector<std::int32_t>, Vector<std::uint8_t>,
             Vector<std::int64_t>, Vector<std::uint32_t>, Vector<std::int64_t>, Vector<float>, Vector<std::int32_t>,
             Vector<std::int32_t>, Vector<std::int32_t>>
      arrays_;
  Predictor predictor_;
  std::size_t n_trees_;
};

// A tree on its way to the scores, with the arrays it consists of.
class TreeOfRows {
 public:
  TreeOfRows(Vector<std::uint32_t> leaf, Matrix<float> values, Vector<double> unit)
      : leaf_(std::move(leaf)), values_(std::move(values)), unit_(std::move(unit)) {
    expect(unit_.shape(0) == values_.shape(1), "a unit per output");
    for (std::size_t i = 0; i < leaf_.shape(0); ++i)
      expect(leaf_.data()[i] < values_.shape(0), "a leaf is out of range");
  }

  LeafValues of(std::size_t n_rows, std::size_t n_outputs) const {
    expect(leaf_.shape(0) == n_rows && values_.shape(1) == n_outputs, "a tree of other rows or outputs");
    return {leaf_.data(), values_.data(), unit_.data()};
  }

  void add_to(OutMatrix<double>& raw, int n_threads) const {
    const LeafValues tree = of(raw.shape(0), raw.shape(1));
    nb::gil_scoped_release release;
    add_leaf_values(tree, raw.shape(0), static_cast<int>(raw.shape(1)), raw.data(), n_threads);
  }

 private:
  Vector<std::uint32_t> leaf_;
  Matrix<float> values_;
  Vector<double> unit_;
};

OnTheWay both(const TreeOfRows* tree, Mixtures* mixtures, const OutMatrix<double>& raw) {
  const std::size_t n = raw.shape(0), d = raw.shape(1);
  return {tree == nullptr ? LeafValues{} : tree->of(n, d), mixtures == nullptr ? RowMixtures{} : mixtures->of(n, d)};
}

void squared_error(OutMatrix<double>& raw, const Matrix<double>& y, const Vector<double>& unit,
                   OutMatrix<float>& gradient, int n_threads, const TreeOfRows* tree, Mixtures* mixtures) {
  const std::size_t n = raw.shape(0), d = raw.shape(1);
  expect(y.shape(0) == n && y.shape(1) == d && unit.shape(0) == d && gradient.shape(0) == n && gradient.shape(1) == d,
         "arrays of rows x outputs");
  const OnTheWay also = both(tree, mixtures, raw);
  nb::gil_scoped_release release;
  squared_error_gradients(also, raw.data(), y.data(), unit.data(), n, static_cast<int>(d), gradient.data(), n_threads);
}

void clipped_squared_error(const Matrix<double>& raw, const Matrix<double>& y, OutMatrix<float>& gradient,
                           int n_threads) {
  const std::size_t n = raw.shape(0), d = raw.shape(1);
  expect(y.shape(0) == n && y.shape(1) == d && gradient.shape(0) == n && gradient.shape(1) == d,
         "arrays of rows x outputs");
  nb::gil_scoped_release release;
  clipped_squared_error_gradients(raw.data(), y.data(), n, static_cast<int>(d), gradient.data(), n_threads);
}

void softmax(OutMatrix<double>& raw, const Vector<std::int32_t>& label, const std::string& curvature,
             OutMatrix<float>& gradient, std::optional<OutMatrix<float>>& hessian, int n_threads,
             const TreeOfRows* tree, Mixtures* mixtures) {
  const std::size_t n = raw.shape(0), d = raw.shape(1);
  expect(label.shape(0) == n && gradient.shape(0) == n && gradient.shape(1) == d &&
             (!hessian || (hessian->shape(0) == n && hessian->shape(1) == d)),
         "arrays of rows x outputs");
  for (std::size_t i = 0; i < n; ++i)
    expect(label.data()[i] >= 0 && static_cast<std::size_t>(label.data()[i]) < d, "a label is out of range");
  const Term kind = term_of(curvature);
  expect(kind != Term::kItself && kind != Term::kSquare, "unknown curvature");
  const OnTheWay also = both(tree, mixtures, raw);
  nb::gil_scoped_release release;
  softmax_gradients(also, raw.data(), label.data(), kind, n, static_cast<int>(d), gradient.data(),
                    hessian ? hessian->data() : nullptr, n_threads);
}

void logistic(OutMatrix<double>& raw, const Matrix<double>& y, OutMatrix<float>& gradient,
              std::optional<OutMatrix<float>>& hessian, int n_threads, const TreeOfRows* tree, Mixtures* mixtures) {
  const std::size_t n = raw.shape(0), d = raw.shape(1);
  expect(y.shape(0) == n && y.shape(1) == d && gradient.shape(0) == n && gradient.shape(1) == d &&
             (!hessian || (hessian->shape(0) == n && hessian->shape(1) == d)),
         "arrays of rows x outputs");
  const OnTheWay also = both(tree, mixtures, raw);
  nb::gil_scoped_release release;
  logistic_gradients(also, raw.data(), y.data(), n, static_cast<int>(d), gradient.data(),
                     hessian ? hessian->data() : nullptr, n_threads);
}

// Of one of the losses: probabilities from scores.
template <auto probabilities>
void predict_probabilities(const Matrix<double>& raw, OutMatrix<double>& out, int n_threads) {
  const std::size_t n = raw.shape(0), d = raw.shape(1);
  expect(d > 0 && out.shape(0) == n && out.shape(1) == d, "arrays of rows x outputs");
  nb::gil_scoped_release release;
  probabilities(raw.data(), n, static_cast<int>(d), out.data(), n_threads);
}

void pinball(const Matrix<double>& raw, const Matrix<double>& y, const Vector<std::int32_t>& column,
             const Vector<double>& above, const Vector<double>& below, OutMatrix<float>& gradient, int n_threads) {
  const std::size_t n = raw.shape(0), d = raw.shape(1);
  expect(y.shape(0) == n && column.shape(0) == d && above.shape(0) == d && below.shape(0) == d &&
             gradient.shape(0) == n && gradient.shape(1) == d,
         "arrays of rows x outputs");
  for (std::size_t j = 0; j < d; ++j)
    expect(column.data()[j] >= 0 && static_cast<std::size_t>(column.data()[j]) < y.shape(1),
           "a column is out of range");
  nb::gil_scoped_release release;
  pinball_gradients(raw.data(), y.data(), y.shape(1), column.data(), above.data(), below.data(), n, static_cast<int>(d),
                    gradient.data(), n_threads);
}

void huber(const Matrix<double>& raw, const Matrix<double>& y, const Vector<double>& unit, const Vector<double>& factor,
           double delta, double largest, OutMatrix<float>& gradient, OutMatrix<float>& hessian, int n_threads) {
  const std::size_t n = raw.shape(0), d = raw.shape(1);
  expect(y.shape(0) == n && y.shape(1) == d && unit.shape(0) == d && factor.shape(0) == d && gradient.shape(0) == n &&
             gradient.shape(1) == d && hessian.shape(0) == n && hessian.shape(1) == d,
         "arrays of rows x outputs");
  nb::gil_scoped_release release;
  huber_gradients(raw.data(), y.data(), unit.data(), factor.data(), delta, largest, n, static_cast<int>(d),
                  gradient.data(), hessian.data(), n_threads);
}

void log_link(const Matrix<double>& raw, const Matrix<double>& y, const Vector<double>& log_mean, double power,
              OutMatrix<float>& gradient, OutMatrix<float>& hessian, int n_threads) {
  const std::size_t n = raw.shape(0), d = raw.shape(1);
  expect(y.shape(0) == n && y.shape(1) == d && log_mean.shape(0) == d && gradient.shape(0) == n &&
             gradient.shape(1) == d && hessian.shape(0) == n && hessian.shape(1) == d,
         "arrays of rows x outputs");
  nb::gil_scoped_release release;
  log_link_gradients(raw.data(), y.data(), log_mean.data(), power, n, static_cast<int>(d), gradient.data(),
                     hessian.data(), n_threads);
}

}  // namespace
}  // namespace polyleaf

NB_MODULE(_core, m) {
  using namespace polyleaf;
  m.doc() = "The hot loops of polyleaf. Private: its functions change without notice.";
  nb::set_leak_warnings(false);

  nb::class_<BinnedMatrix>(m, "BinnedMatrix", "The training table as bin codes.")
      .def_prop_ro("n_rows", [](const BinnedMatrix& b) { return b.n_rows; })
      .def_prop_ro("n_features", [](const BinnedMatrix& b) { return b.features.size(); })
      .def(
          "cuts",
          [](const BinnedMatrix& b, std::size_t f) {
            expect(f < b.features.size(), "feature out of range");
            return to_numpy(std::vector<double>(b.features[f].cuts));
          },
          "feature"_a)
      .def(
          "has_missing",
          [](const BinnedMatrix& b, std::size_t f) {
            expect(f < b.features.size(), "feature out of range");
            return b.features[f].has_missing;
          },
          "feature"_a)
      .def(
          "categories",
          [](const BinnedMatrix& b, std::size_t f) {
            expect(f < b.features.size(), "feature out of range");
            return to_numpy(std::vector<std::uint32_t>(b.features[f].categories));
          },
          "feature"_a, "The category of each bin; none of a numeric feature.")
      .def("codes", &training_codes, "Codes of the training rows, rows x features; missing is the last bin.")
      .def("feature_groups", &groups_of_features,
           "Per feature, the group whose combinations of bins histograms may visit as one; -1: none.")
      .def(
          "encode", [](const BinnedMatrix& b, const Table& x, int n_threads) { return encode_table(x, b, n_threads); },
          "table"_a, "n_threads"_a, "Codes of other rows by the same cut points.")
      .def("take", &take, "rows"_a, "n_threads"_a, "Some rows, in this order, as a table of their own.");
  m.def("bin_table", &bin_table, "table"_a, "weight"_a.none(), "max_bins"_a.none(), "n_threads"_a, "first_column"_a = 0,
        "categorical"_a.none() = nb::none());
  m.def("table_of_cuts", &make_table_of_cuts, "cuts"_a, "has_missing"_a, "A table of no rows with these cut points.");
  m.def("codes_in_groups", &grouped_codes, "matrix"_a, "size"_a, "n_threads"_a,
        "Codes of the training rows, groups of neighbouring features x rows x features of a group.");
  m.def("weight_units", &units_of_weights, "weight"_a, "Weights as whole numbers, as the cuts see them.");
  m.def("join_columns", &join_parts, "parts"_a, "n_threads"_a, "Tables of the same rows side by side; empties them.");

  nb::class_<TreeGrower>(m, "TreeGrower", "Grows trees on one table and keeps its work space between rounds.")
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

  nb::class_<SparseLabels>(m, "SparseLabels", "Labels and scores of GBDT-sparse, which grows its trees from them.")
      .def(nb::new_(&make_sparse_labels), "row_begin"_a, "label"_a, "n_outputs"_a)
      .def("grow", &grow_sparse, nb::kw_only(), "matrix"_a, "weight"_a.none(), "rows"_a.none(), "feature_mask"_a.none(),
           "level_share"_a, "node_share"_a, "sample_key"_a, "group_begin"_a.none(), "group_feature"_a.none(),
           "max_depth"_a, "max_leaves"_a, "min_samples_leaf"_a, "min_split_gain"_a, "min_child_weight"_a,
           "reg_lambda"_a, "reg_alpha"_a, "sparse_leaves"_a, "restricted"_a, "learning_rate"_a, "n_threads"_a)
      .def("add", &add_to_sparse, "value_begin"_a, "values"_a, "value_output"_a, "width"_a, "n_threads"_a);

  nb::class_<ForestPredictor>(m, "ForestPredictor", "A forest packed for prediction.")
      .def(nb::init<Vector<std::int64_t>, Vector<std::int32_t>, Vector<double>, Vector<std::int32_t>,
                    Vector<std::uint8_t>, Vector<std::int64_t>, Vector<std::uint32_t>, Vector<std::int64_t>,
                    Vector<float>, Vector<std::int32_t>, Vector<std::int32_t>, Vector<std::int32_t>>(),
           nb::kw_only(), "node_begin"_a, "feature"_a, "threshold"_a, "left"_a, "missing_left"_a, "category_begin"_a,
           "category_bits"_a, "value_begin"_a, "values"_a, "value_output"_a, "tree_output"_a, "tree_width"_a)
      .def("add", &ForestPredictor::add, "table"_a, "begin"_a, "end"_a, "raw"_a.noconvert(), "n_threads"_a)
      .def("apply", &ForestPredictor::apply, "table"_a, "begin"_a, "end"_a, "n_threads"_a);

  nb::class_<Mixtures>(m, "Mixtures", "Weighted sums of each row's gradients, and of a term of them.")
      .def(nb::init<Matrix<float>, OutMatrix<float>, std::optional<Vector<double>>, const std::string&,
                    std::optional<OutVector<double>>>(),
           "columns"_a, "out"_a.noconvert(), "share"_a = nb::none(), "term"_a = "itself",
           "sums"_a.noconvert() = nb::none())
      .def("make", &Mixtures::make, "values"_a, "n_threads"_a);
  m.def("weighted_sums", &weighted_sums, "values"_a, "weight"_a, "term"_a, "out"_a.noconvert(), "n_threads"_a);
  nb::class_<TreeOfRows>(m, "TreeOfRows", "A tree that the next pass over the scores of its rows adds to them.")
      .def(nb::init<Vector<std::uint32_t>, Matrix<float>, Vector<double>>(), "leaf"_a, "values"_a, "unit"_a)
      .def("add_to", &TreeOfRows::add_to, "raw"_a.noconvert(), "n_threads"_a);
  m.def("squared_error", &squared_error, "raw"_a.noconvert(), "y"_a, "unit"_a, "gradient"_a.noconvert(), "n_threads"_a,
        "tree"_a.none() = nb::none(), "mixtures"_a.none() = nb::none());
  m.def("clipped_squared_error", &clipped_squared_error, "raw"_a, "y"_a, "gradient"_a.noconvert(), "n_threads"_a);
  m.def("softmax", &softmax, "raw"_a.noconvert(), "label"_a, "curvature"_a, "gradient"_a.noconvert(),
        "hessian"_a.noconvert().none(), "n_threads"_a, "tree"_a.none() = nb::none(), "mixtures"_a.none() = nb::none());
  m.def("logistic", &logistic, "raw"_a.noconvert(), "y"_a, "gradient"_a.noconvert(), "hessian"_a.noconvert().none(),
        "n_threads"_a, "tree"_a.none() = nb::none(), "mixtures"_a.none() = nb::none());
  m.def("softmax_probabilities", &predict_probabilities<softmax_probabilities>, "raw"_a, "out"_a.noconvert(),
        "n_threads"_a);
  m.def("logistic_probabilities", &predict_probabilities<logistic_probabilities>, "raw"_a, "out"_a.noconvert(),
        "n_threads"_a);
  m.def("pinball", &pinball, "raw"_a, "y"_a, "column"_a, "above"_a, "below"_a, "gradient"_a.noconvert(), "n_threads"_a);
  m.def("huber", &huber, "raw"_a, "y"_a, "unit"_a, "factor"_a, "delta"_a, "largest"_a, "gradient"_a.noconvert(),
        "hessian"_a.noconvert(), "n_threads"_a);
  m.def("log_link", &log_link, "raw"_a, "y"_a, "log_mean"_a, "power"_a, "gradient"_a.noconvert(),
        "hessian"_a.noconvert(), "n_threads"_a);

  m.def(
      "has_infinity",
      [](const Table& table, int n_threads) {
        const MatrixView x = view_of(table);
        nb::gil_scoped_release release;
        return has_infinity(x, n_threads);
      },
      "table"_a, "n_threads"_a);
  m.def("max_threads", &max_threads, "OpenMP's current limit.");
  m.def("kernels", [] { return std::string(kernels().name); }, "The instruction set in use.");
  m.def("select_kernels", [](const std::string& name) { return select_kernels(name.c_str()); }, "name"_a);
}
