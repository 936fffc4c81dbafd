#include "bindings/task.hpp"

namespace polyleaf {

TaskOfArrays::TaskOfArrays(const BinnedMatrix& matrix, std::optional<Vector<double>> weight) : matrix_(matrix) {
  task_.matrix = &matrix;
  if (weight) task_.leaf_gradients.weight = keep_vector(*weight, matrix.n_rows, "weight: one value per row");
  task_.split_gradients.weight = task_.leaf_gradients.weight;
}

template <class T>
const T* TaskOfArrays::keep_vector(Vector<T> array, std::size_t size, const char* message) {
  expect(array.shape(0) == size, message);
  return keep(std::move(array));
}

template <class T>
const T* TaskOfArrays::keep_rows(RowMatrix<T> array, std::size_t n_outputs, const char* name, std::size_t& stride) {
  expect_rows(array, matrix_.n_rows, n_outputs, name);
  stride = static_cast<std::size_t>(array.stride(0));
  return keep(std::move(array));
}

void TaskOfArrays::set_gradients(RowMatrix<float> gradient, std::optional<RowMatrix<float>> hessian, Gradients& out) {
  const std::size_t d = gradient.shape(1);
  expect(d > 0, "gradient: no outputs");
  expect(out.gradient == nullptr, "gradient: set already");
  out.gradient = keep_rows(std::move(gradient), d, "gradient", out.gradient_stride);
  if (hessian) out.hessian = keep_rows(std::move(*hessian), d, "hessian", out.hessian_stride);
  out.n_rows = matrix_.n_rows;
  out.n_outputs = static_cast<int>(d);
}

void TaskOfArrays::set_leaf_gradients(RowMatrix<float> gradient, std::optional<RowMatrix<float>> hessian,
                                      const std::string& hessian_rule, Vector<double> unit,
                                      std::optional<Vector<std::int32_t>> label) {
  LeafGradients& out = task_.leaf_gradients;
  const std::size_t d = gradient.shape(1);
  set_gradients(std::move(gradient), std::move(hessian), out);
  out.hessian_rule = term_of(hessian_rule);
  out.unit = keep_vector(std::move(unit), d, "unit: one value per output");
  if (!label) return;
  out.label = keep_vector(std::move(*label), matrix_.n_rows, "label: one value per row");
  for (std::size_t i = 0; i < matrix_.n_rows; ++i)
    expect(out.label[i] >= 0 && static_cast<std::size_t>(out.label[i]) < d, "label: a class is out of range");
  task_.split_gradients.label = out.label;
}

void TaskOfArrays::set_made_gradients(const MadeGradients& made, const std::string& hessian_rule, Vector<double> unit) {
  LeafGradients& out = task_.leaf_gradients;
  const auto d = static_cast<std::size_t>(made.n_outputs());
  expect(out.gradient == nullptr && out.made == nullptr, "gradient: set already");
  expect(made.n_rows() == matrix_.n_rows, "gradient: made of other rows");
  out.hessian_rule = term_of(hessian_rule);
  const bool by_rule = out.hessian_rule != Term::kItself;
  expect(!by_rule || !made.has_hessian(), "hessian: by a rule, or made");
  expect(by_rule || (made.largest_gradient.size() == d && made.largest_hessian.size() == (made.has_hessian() ? d : 0)),
         "gradient: no sweep has seen how large they are");
  out.made = &made;
  out.n_rows = matrix_.n_rows;
  out.n_outputs = made.n_outputs();
  out.unit = keep_vector(std::move(unit), d, "unit: one value per output");
}

void TaskOfArrays::set_split_gradients(RowMatrix<float> gradient, std::optional<RowMatrix<float>> hessian,
                                       std::optional<Vector<float>> curvature, Vector<double> gain_weight,
                                       Vector<double> unit) {
  SplitGradients& out = task_.split_gradients;
  const std::size_t k = gradient.shape(1);
  set_gradients(std::move(gradient), std::move(hessian), out);
  if (curvature) out.curvature = keep_vector(std::move(*curvature), matrix_.n_rows, "curvature: one value per row");
  out.gain_weight = keep_vector(std::move(gain_weight), k, "gain_weight: one value per output");
  out.unit = keep_vector(std::move(unit), k, "unit: one value per output");
}

void TaskOfArrays::set_shard(nb::object peers, std::size_t n_all_rows, Matrix<std::int64_t> runs) {
  expect(n_all_rows >= matrix_.n_rows, "n_all_rows: those here are some of them");
  expect(runs.shape(1) == 2, "runs: a place and a number each");
  std::vector<RowRun> copied;
  for (std::size_t i = 0; i < runs.shape(0); ++i) {
    const std::int64_t begin = runs.data()[2 * i], number = runs.data()[2 * i + 1];
    expect(begin >= 0 && number >= 0 && (i == 0 ? begin == 0 : static_cast<std::size_t>(begin) > copied.back().begin),
           "runs: places ascend from 0");
    copied.push_back({static_cast<std::size_t>(begin), static_cast<std::size_t>(number)});
  }
  peers_ = std::make_unique<PythonPeers>(std::move(peers));
  task_.shard = Shard(*peers_, n_all_rows, std::move(copied));
}

void TaskOfArrays::set_sample(Vector<std::uint32_t> rows, std::optional<Vector<double>> weight) {
  static const std::uint32_t no_rows = 0;
  checked_rows(rows, matrix_, !task_.shard.is_alone());
  for (std::size_t i = 1; i < rows.shape(0); ++i)
    expect(rows.data()[i - 1] < rows.data()[i], "rows of a sample must ascend");
  task_.sample.n_rows = rows.shape(0);
  task_.sample.rows = task_.sample.n_rows == 0 ? &no_rows : keep(std::move(rows));  // null would be all
  if (!weight) return;
  task_.sample.all_rows_in_leaves = true;
  task_.split_gradients.weight = keep_vector(std::move(*weight), matrix_.n_rows, "sample weight: one value per row");
}

void TaskOfArrays::set_features(std::optional<Vector<std::uint8_t>> mask, double level_share, double node_share,
                                std::uint64_t key) {
  if (mask)
    task_.features.mask = keep_vector(std::move(*mask), matrix_.features.size(), "feature mask: one value per feature");
  task_.features.level_share = level_share;
  task_.features.node_share = node_share;
  task_.features.key = key;
}

void TaskOfArrays::set_interactions(Vector<std::int64_t> group_begin, Vector<std::int32_t> group_feature) {
  const std::size_t n_groups = group_begin.shape(0) > 0 ? group_begin.shape(0) - 1 : 0;
  const std::int64_t* begin = group_begin.data();
  expect(n_groups > 0 && begin[0] == 0 && begin[n_groups] == static_cast<std::int64_t>(group_feature.shape(0)),
         "group_begin: the groups do not fit their features");
  for (std::size_t g = 0; g < n_groups; ++g) expect(begin[g] <= begin[g + 1], "group_begin: groups must ascend");
  for (std::size_t i = 0; i < group_feature.shape(0); ++i) {
    const std::int32_t feature = group_feature.data()[i];
    expect(feature >= 0 && static_cast<std::size_t>(feature) < matrix_.features.size(),
           "group_feature: a feature is out of range");
  }
  task_.features.groups = {n_groups, keep(std::move(group_begin)), keep(std::move(group_feature))};
}

void TaskOfArrays::set_monotone(Matrix<std::int8_t> sign) {
  expect(sign.shape(0) == matrix_.features.size(), "monotone: one sign per feature and output");
  monotone_outputs_ = static_cast<int>(sign.shape(1));
  task_.monotone = keep(std::move(sign));
}

void TaskOfArrays::set_renewal(Vector<double> level, Matrix<double> y, Vector<std::int32_t> column,
                               std::optional<RowMatrix<double>> cell_weight) {
  Renewal& out = task_.renewal;
  const std::size_t d = level.shape(0);
  expect(column.shape(0) == d, "renewal: a level and a column per output");
  expect(y.shape(0) == matrix_.n_rows, "renewal: targets of all rows");
  for (std::size_t j = 0; j < d; ++j)
    expect(column.data()[j] >= 0 && static_cast<std::size_t>(column.data()[j]) < y.shape(1),
           "renewal: a column is out of range");
  if (cell_weight) out.cell_weight = keep_rows(std::move(*cell_weight), d, "cell_weight", out.cell_stride);
  out.y_stride = y.shape(1);
  out.y = keep(std::move(y));
  out.column = keep(std::move(column));
  out.level = keep(std::move(level));
  renewed_outputs_ = static_cast<int>(d);
}

void TaskOfArrays::set_raw(Scores raw) {
  expect_rows(raw, matrix_.n_rows, raw.shape(1), "raw");
  raw_outputs_ = static_cast<int>(raw.shape(1));
  task_.destination.raw_stride = static_cast<std::size_t>(raw.stride(0));
  task_.destination.raw = keep(std::move(raw));
}

void TaskOfArrays::set_leaf_of_row(OutVector<std::uint32_t> leaf_of_row) {
  expect(leaf_of_row.shape(0) == matrix_.n_rows, "leaf_of_row: one number per row");
  task_.destination.leaf_of_row = keep(std::move(leaf_of_row));
}

const GrowTask& TaskOfArrays::of_leaves(const GrowSettings& settings) const {
  expect(task_.leaf_gradients.gradient != nullptr || task_.leaf_gradients.made != nullptr,
         "gradients: those of leaves are needed");
  const int d = task_.leaf_gradients.n_outputs;
  expect(settings.sparse.k <= d, "sparse_leaves: at most one per output");
  expect(task_.destination.raw == nullptr || raw_outputs_ == d, "raw: one score per row and output");
  if (task_.renewal.level != nullptr)
    expect(renewed_outputs_ == d && task_.destination.raw != nullptr, "renewal: a level per output, and raw scores");
  if (settings.exact_leaves())
    expect(task_.leaf_gradients.label != nullptr && settings.sparse.k == 0,
           "hessian: an exact one needs the labels, and leaves of all outputs");
  if (!task_.shard.is_alone())
    expect(!settings.exact_leaves() && !task_.sample.all_rows_in_leaves,
           "shard: neither an exact Hessian nor weights of a sample go with several shards");
  return task_;
}

const GrowTask& TaskOfArrays::dense(const GrowSettings& settings) const {
  of_leaves(settings);
  expect(task_.split_gradients.gradient != nullptr, "gradients: those of splits are needed");
  const int d = task_.leaf_gradients.n_outputs;
  const bool all_outputs = task_.split_gradients.n_outputs == d;  // no sketch
  expect(settings.sparse.k == 0 || all_outputs, "sparse_leaves: splits are to be found on all outputs");
  if (task_.monotone != nullptr) {
    expect(monotone_outputs_ == d && all_outputs, "monotone: one sign per feature and output, and no sketch");
    expect(settings.sparse.k == 0 && !settings.exact_leaves(),
           "monotone: only for leaves of all outputs and a diagonal Hessian");
  }
  expect(!settings.exact_splits() || all_outputs, "hessian: an exact one in splits needs all outputs");
  expect(!settings.exact_splits() || !task_.output_gains, "output_gains: those of an exact Hessian are of all outputs");
  return task_;
}

const GrowTask& TaskOfArrays::label_sparse(const GrowSettings& settings, std::size_t n_rows,
                                           std::size_t n_outputs) const {
  expect(task_.leaf_gradients.gradient == nullptr && task_.leaf_gradients.made == nullptr &&
             task_.split_gradients.gradient == nullptr,
         "gradients: those of sparse labels are the labels' own");
  expect(matrix_.n_rows == n_rows, "matrix: not as many rows as the labels");
  expect(settings.sparse.k >= 1 && static_cast<std::size_t>(settings.sparse.k) <= n_outputs,
         "sparse_leaves: from 1 to the number of labels");
  expect(task_.shard.is_alone(), "shard: not with sparse labels");
  expect(!task_.sample.all_rows_in_leaves, "sample weight: not with sparse labels");
  expect(task_.monotone == nullptr, "monotone: not with sparse labels");
  expect(task_.renewal.level == nullptr, "renewal: not with sparse labels");
  expect(task_.destination.raw == nullptr, "raw: the scores of sparse labels are the labels' own");
  expect(!task_.output_gains, "output_gains: not with sparse labels");
  return task_;
}

}  // namespace polyleaf
