#include <cmath>
#include <initializer_list>
#include <limits>
#include <vector>

#include "base/threads.hpp"
#include "bindings/arrays.hpp"
#include "bindings/forest.hpp"
#include "bindings/rooms.hpp"
#include "explain/shap.hpp"

namespace polyleaf {
namespace {

template <class T>
using OutPairs = nb::ndarray<T, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
template <class T>
using OutCube = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// The forest of these arrays, with what its nodes cover.
ForestArrays with_cover(ForestArrays forest, const Vector<double>& cover, const Vector<std::int64_t>& count) {
  expect(cover.shape(0) == forest.n_nodes && count.shape(0) == forest.n_nodes, "cover or count: one per node");
  forest.cover = cover.data();
  forest.count = count.data();
  return forest;
}

std::vector<std::int32_t> ascending(const Vector<std::int32_t>& outputs) {
  std::vector<std::int32_t> out(outputs.data(), outputs.data() + outputs.shape(0));
  for (std::size_t i = 1; i < out.size(); ++i) expect(out[i - 1] < out[i], "outputs must ascend");
  return out;
}

class ForestExplainer {
 public:
  ForestExplainer(const nb::dict& arrays, std::size_t n_trees, const Vector<std::int32_t>& outputs)
      : arrays_(arrays),
        cover_(array_of<Vector<double>>(arrays, "cover")),
        count_(array_of<Vector<std::int64_t>>(arrays, "count")),
        paths_(checked(n_trees), n_trees, ascending(outputs)) {}

  nb::object expected() const { return to_numpy(std::vector<double>(paths_.expected())); }
  nb::object features() const { return to_numpy(std::vector<std::int32_t>(paths_.features())); }
  std::size_t bytes_of_thread() const { return bytes_of_block(paths_); }
  std::size_t bytes_of_pairs() const { return polyleaf::bytes_of_pairs(paths_); }
  std::size_t bytes_of_sums(std::size_t n_rows) const { return bytes_of_spans(paths_, n_rows); }

  // The ways as numbers, a row for each tree, batch and step: for devices that walk them on their own.
  nb::dict layout() const {
    const std::uint32_t* bits = arrays_.checked().category_bits;
    std::vector<std::int64_t> trees, batches, steps;
    std::vector<double> threshold;
    std::vector<std::uint32_t> depth;
    const auto add = [](std::vector<std::int64_t>& to, std::initializer_list<std::size_t> numbers) {
      for (const std::size_t number : numbers) to.push_back(static_cast<std::int64_t>(number));
    };
    for (const PathTree& tree : paths_.trees())
      add(trees, {tree.batch_begin, tree.batch_end, tree.step_begin, tree.table_begin, tree.n_points, tree.n_depths,
                  tree.first_output, tree.n_outputs});
    for (const LeafBatch& batch : paths_.batches())
      add(batches, {batch.step_begin, batch.step_end, batch.element_begin, batch.first_leaf, batch.n_leaves});
    for (const PathStep& step : paths_.steps()) {
      const CategoryWords set = step.set < 0 ? CategoryWords{bits, 0} : paths_.sets()[step.set];
      add(steps, {step.column, step.depth, step.above, step.n_elements, step.right, step.missing_right,
                  static_cast<std::size_t>(set.words - bits), set.n_words});
      threshold.push_back(step.threshold);
    }
    for (const PathElement& element : paths_.elements()) depth.push_back(element.depth);
    nb::dict out;
    out["trees"] = to_numpy(std::move(trees), 8);
    out["batches"] = to_numpy(std::move(batches), 5);
    out["steps"] = to_numpy(std::move(steps), 8);
    out["threshold"] = to_numpy(std::move(threshold));
    out["element_depth"] = to_numpy(std::move(depth));
    out["tables"] = to_numpy(std::vector<double>(paths_.tables()));
    out["unfulfilled"] = to_numpy(std::vector<double>(paths_.unfulfilled()));
    out["value_begin"] = to_numpy(std::vector<std::int64_t>(paths_.value_begin().begin(), paths_.value_begin().end()));
    out["values"] = to_numpy(std::vector<double>(paths_.values()));
    out["outputs_together"] = kOutputsTogether;
    out["value_output"] = to_numpy(std::vector<std::uint32_t>(paths_.value_output()));
    return out;
  }

  template <class Number>
  void write(const Table& table, const Vector<std::int32_t>& columns, const Vector<std::int32_t>& column_of_output,
             const Vector<double>& unit, OutCube<Number>& out, int n_threads) const {
    const MatrixView x = view_of(table);
    expect(out.shape(0) == x.n_rows, "one result per row");
    const ShapTarget target = checked_target(x, columns, column_of_output, unit, out.shape(1), out.shape(2));
    nb::gil_scoped_release release;
    shap_values(paths_, x, columns.data(), target, out.data(), n_threads);
  }

  template <class Number>
  void write_pairs(const Table& table, const Vector<std::int32_t>& columns,
                   const Vector<std::int32_t>& column_of_output, const Vector<double>& unit, OutPairs<Number>& out,
                   int n_threads) const {
    const MatrixView x = view_of(table);
    expect(out.shape(0) == x.n_rows && out.shape(1) == out.shape(2), "one result per row and pair");
    const ShapTarget target = checked_target(x, columns, column_of_output, unit, out.shape(1), out.shape(3));
    nb::gil_scoped_release release;
    shap_interactions(paths_, x, columns.data(), target, out.data(), n_threads);
  }

  void add_abs(const Table& table, const Vector<std::int32_t>& columns, const Vector<std::int32_t>& column_of_output,
               const Vector<double>& unit, OutMatrix<double>& sums, int n_threads) const {
    const MatrixView x = view_of(table);
    const ShapTarget target = checked_target(x, columns, column_of_output, unit, sums.shape(0), sums.shape(1));
    nb::gil_scoped_release release;
    add_absolute(paths_, x, columns.data(), target, sums.data(), n_threads);
  }

 private:
  ForestArrays checked(std::size_t n_trees) const {
    ForestArrays forest = with_cover(arrays_.checked(), cover_, count_);
    expect(n_trees <= forest.n_trees, "trees are out of range");
    return forest;
  }

  ShapTarget checked_target(const MatrixView& x, const Vector<std::int32_t>& columns,
                            const Vector<std::int32_t>& column_of_output, const Vector<double>& unit,
                            std::size_t n_features, std::size_t n_outputs) const {
    const std::size_t used = paths_.features().size(), asked = paths_.expected().size();
    expect(columns.shape(0) == used, "columns: one for each feature that is used");
    for (std::size_t i = 0; i < used; ++i) {
      expect(columns.data()[i] >= 0 && static_cast<std::size_t>(columns.data()[i]) < x.n_columns,
             "a column is out of range");
      expect(static_cast<std::size_t>(paths_.features()[i]) < n_features, "a feature is out of range");
    }
    expect(n_outputs == asked && column_of_output.shape(0) == asked && unit.shape(0) == asked,
           "one column and unit for each output");
    for (std::size_t k = 0; k < asked; ++k)
      expect(column_of_output.data()[k] >= 0 && static_cast<std::size_t>(column_of_output.data()[k]) < asked,
             "the column of an output is out of range");
    return {n_features, column_of_output.data(), unit.data()};
  }

  ArraysOfForest arrays_;
  Vector<double> cover_;
  Vector<std::int64_t> count_;
  LeafPaths paths_;
};

// A value that each bin of rows [begin, end) stands for: it goes the way of all values of the bin at cut points.
nb::object values_of_bins(const BinnedMatrix& matrix, const Vector<std::int32_t>& features, std::size_t begin,
                          std::size_t end, int n_threads) {
  expect(begin <= end && end <= matrix.n_rows, "rows are out of range");
  for (std::size_t i = 0; i < features.shape(0); ++i)
    expect(features.data()[i] >= 0 && static_cast<std::size_t>(features.data()[i]) < matrix.features.size(),
           "a feature is out of range");
  const std::size_t n_rows = end - begin, n_columns = features.shape(0);
  std::vector<double> values(n_rows * n_columns);
  const std::int32_t* wanted = features.data();
  {
    nb::gil_scoped_release release;
    parallel_for(n_rows * n_columns < kParallelGathers ? 1 : n_threads, n_columns, [&](std::size_t column, int) {
      const auto feature = static_cast<std::size_t>(wanted[column]);
      const FeatureBins& bins = matrix.features[feature];
      std::vector<double> of_code(bins.n_value_bins + 1, std::numeric_limits<double>::quiet_NaN());
      for (std::size_t code = 0; code < bins.n_value_bins; ++code) {
        if (bins.categorical) {
          if (code < bins.categories.size()) of_code[code] = static_cast<double>(bins.categories[code]);
        } else {
          of_code[code] = code < bins.cuts.size() ? bins.cuts[code] : HUGE_VAL;
        }
      }
      for (std::size_t row = 0; row < n_rows; ++row)
        values[row * n_columns + column] = of_code[matrix.code(begin + row, feature)];
    });
  }
  return to_numpy(std::move(values), n_columns);
}

}  // namespace

void bind_explain(nb::module_& m) {
  nb::class_<ForestExplainer>(m, "ForestExplainer", "The ways to the leaves of a forest, for Shapley values.")
      .def(nb::init<const nb::dict&, std::size_t, const Vector<std::int32_t>&>(), "arrays"_a, "n_trees"_a, "outputs"_a)
      .def_prop_ro("expected", &ForestExplainer::expected, "What the trees add up to on average, in units.")
      .def_prop_ro("features", &ForestExplainer::features, "Those that a split asks for, ascending.")
      .def_prop_ro("bytes_of_thread", &ForestExplainer::bytes_of_thread)
      .def_prop_ro("bytes_of_pairs", &ForestExplainer::bytes_of_pairs, "Of a thread, beside those.")
      .def("layout", &ForestExplainer::layout, "The ways as numbers, by name.")
      .def("bytes_of_sums", &ForestExplainer::bytes_of_sums, "n_rows"_a)
      .def("write", &ForestExplainer::write<double>, "table"_a, "columns"_a, "column_of_output"_a, "unit"_a,
           "out"_a.noconvert(), "n_threads"_a)
      .def("write", &ForestExplainer::write<float>, "table"_a, "columns"_a, "column_of_output"_a, "unit"_a,
           "out"_a.noconvert(), "n_threads"_a)
      .def("write_pairs", &ForestExplainer::write_pairs<double>, "table"_a, "columns"_a, "column_of_output"_a, "unit"_a,
           "out"_a.noconvert(), "n_threads"_a)
      .def("write_pairs", &ForestExplainer::write_pairs<float>, "table"_a, "columns"_a, "column_of_output"_a, "unit"_a,
           "out"_a.noconvert(), "n_threads"_a)
      .def("add_abs", &ForestExplainer::add_abs, "table"_a, "columns"_a, "column_of_output"_a, "unit"_a,
           "sums"_a.noconvert(), "n_threads"_a);
  m.def("values_of_bins", &values_of_bins, "matrix"_a, "features"_a, "begin"_a, "end"_a, "n_threads"_a);
}

}  // namespace polyleaf
