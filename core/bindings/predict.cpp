#include <algorithm>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/forest.hpp"
#include "bindings/rooms.hpp"
#include "predict/binned_walk.hpp"
#include "predict/predictor.hpp"
#include "predict/raw_scores.hpp"
#include "predict/sparse_scores.hpp"

namespace polyleaf {
namespace {

class ForestPredictor {
 public:
  explicit ForestPredictor(const nb::dict& arrays) : arrays_(arrays), forest_(arrays_.checked()), predictor_(forest_) {
    for (std::size_t i = 0; i < arrays_.n_sparse_values(); ++i)
      last_output_ = std::max(last_output_, forest_.value_output[i]);
  }

  void add(const Table& table, std::size_t begin, std::size_t end, OutMatrix<double>& raw, int n_threads) const {
    const MatrixView x = view_of(table);
    expect(begin <= end && end <= forest_.n_trees && raw.shape(0) == x.n_rows, "trees or rows are out of range");
    nb::gil_scoped_release release;
    predictor_.add(x, begin, end, raw.data(), raw.shape(1), n_threads);
  }

  void add_binned(const BinnedMatrix& matrix, std::size_t begin, std::size_t end, OutMatrix<double>& raw,
                  int n_threads) const {
    expect(begin <= end && end <= forest_.n_trees && raw.shape(0) == matrix.n_rows, "trees or rows are out of range");
    nb::gil_scoped_release release;
    polyleaf::add_binned(forest_, matrix, begin, end, raw.data(), raw.shape(1), n_threads);
  }

  nb::object apply_binned(const BinnedMatrix& matrix, std::size_t begin, std::size_t end, int n_threads) const {
    expect(begin < end && end <= forest_.n_trees, "trees are out of range");
    std::vector<std::int32_t> leaves(matrix.n_rows * (end - begin));
    {
      nb::gil_scoped_release release;
      polyleaf::apply_binned(forest_, matrix, begin, end, leaves.data(), n_threads);
    }
    return to_numpy(std::move(leaves), end - begin);
  }

  nb::object apply(const Table& table, std::size_t begin, std::size_t end, int n_threads) const {
    const MatrixView x = view_of(table);
    expect(begin < end && end <= forest_.n_trees, "trees are out of range");
    std::vector<std::int32_t> leaves(x.n_rows * (end - begin));
    {
      nb::gil_scoped_release release;
      predictor_.apply(x, begin, end, leaves.data(), n_threads);
    }
    return to_numpy(std::move(leaves), end - begin);
  }

  nb::object best_outputs(const Matrix<std::int32_t>& leaves, std::size_t begin, std::size_t n_outputs, std::size_t k,
                          int n_threads) const {
    const LeavesOfRows rows = checked(leaves, begin, n_outputs);
    expect(k >= 1 && k <= n_outputs, "k is out of range");
    std::vector<std::int32_t> best(rows.n_rows * k);
    {
      nb::gil_scoped_release release;
      polyleaf::best_outputs(forest_, rows, n_outputs, k, best.data(), n_threads);
    }
    return to_numpy(std::move(best), k);
  }

  nb::tuple outputs_above(const Matrix<std::int32_t>& leaves, std::size_t begin, std::size_t n_outputs,
                          double threshold, int n_threads) const {
    const LeavesOfRows rows = checked(leaves, begin, n_outputs);
    expect(threshold >= 0, "the threshold is below 0");
    OutputsOfRows found;
    {
      nb::gil_scoped_release release;
      found = polyleaf::outputs_above(forest_, rows, n_outputs, threshold, n_threads);
    }
    return nb::make_tuple(to_numpy(std::move(found.row_begin)), to_numpy(std::move(found.output)));
  }

 private:
  // Leaves of rows in the trees from `begin` on, whose values belong to outputs below `n_outputs`.
  LeavesOfRows checked(const Matrix<std::int32_t>& leaves, std::size_t begin, std::size_t n_outputs) const {
    LeavesOfRows rows{leaves.shape(0), begin, begin + leaves.shape(1), leaves.data()};
    expect(forest_.value_output != nullptr, "leaves hold all outputs");
    expect(begin <= forest_.n_trees && leaves.shape(1) <= forest_.n_trees - begin, "trees are out of range");
    for (std::size_t i = 0; i < rows.n_rows * leaves.shape(1); ++i) {
      const std::size_t tree = begin + i % leaves.shape(1);
      const std::int64_t node = forest_.node_begin[tree] + rows.leaves[i];
      expect(rows.leaves[i] >= 0 && node < forest_.node_begin[tree + 1] && forest_.value_begin[node] >= 0,
             "a leaf is out of range");
    }
    expect(n_outputs > static_cast<std::size_t>(last_output_), "an output is out of range");
    return rows;
  }

  ArraysOfForest arrays_;
  ForestArrays forest_;
  Predictor predictor_;
  std::int32_t last_output_ = -1;  // that a value of a sparse leaf belongs to
};

// Calls rule(vector, rows, outputs, threads, raw).
template <class Rule>
void over_scores(const Rule& rule, const Vector<double>& of_outputs, OutMatrix<double>& raw, int n_threads) {
  expect(of_outputs.shape(0) == raw.shape(1), "there is a number for each output");
  nb::gil_scoped_release release;
  rule(of_outputs.data(), raw.shape(0), raw.shape(1), n_threads, raw.data());
}

}  // namespace

void bind_predict(nb::module_& m) {
  m.def(
      "start_scores",
      [](const Vector<double>& start, OutMatrix<double>& raw, int n_threads) {
        over_scores(start_scores, start, raw, n_threads);
      },
      "start"_a, "raw"_a.noconvert(), "n_threads"_a, "Makes every row of scores `start`.");
  m.def(
      "scale_scores",
      [](const Vector<double>& unit, OutMatrix<double>& raw, int n_threads) {
        over_scores(scale_scores, unit, raw, n_threads);
      },
      "unit"_a, "raw"_a.noconvert(), "n_threads"_a, "Multiplies each output's scores by its unit.");
  nb::class_<ForestPredictor>(m, "ForestPredictor", "A forest packed for prediction.")
      .def(nb::init<const nb::dict&>(), "arrays"_a)
      .def("add", &ForestPredictor::add, "table"_a, "begin"_a, "end"_a, "raw"_a.noconvert(), "n_threads"_a)
      .def("add_binned", &ForestPredictor::add_binned, "matrix"_a, "begin"_a, "end"_a, "raw"_a.noconvert(),
           "n_threads"_a, "The same for rows of a binned table whose cut points the trees split at.")
      .def("apply_binned", &ForestPredictor::apply_binned, "matrix"_a, "begin"_a, "end"_a, "n_threads"_a)
      .def("apply", &ForestPredictor::apply, "table"_a, "begin"_a, "end"_a, "n_threads"_a)
      .def("best_outputs", &ForestPredictor::best_outputs, "leaves"_a, "begin"_a, "n_outputs"_a, "k"_a, "n_threads"_a,
           "The best outputs of rows by the sparse leaves that they reach in the trees from `begin` on.")
      .def("outputs_above", &ForestPredictor::outputs_above, "leaves"_a, "begin"_a, "n_outputs"_a, "threshold"_a,
           "n_threads"_a, "Their outputs with larger scores than a threshold, as compressed rows.");
}

}  // namespace polyleaf
