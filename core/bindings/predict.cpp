#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/forest.hpp"
#include "bindings/rooms.hpp"
#include "predict/binned_walk.hpp"
#include "predict/predictor.hpp"

namespace polyleaf {
namespace {

class ForestPredictor {
 public:
  explicit ForestPredictor(const nb::dict& arrays) : arrays_(arrays), forest_(arrays_.checked()), predictor_(forest_) {}

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

 private:
  ArraysOfForest arrays_;
  ForestArrays forest_;
  Predictor predictor_;
};

}  // namespace

void bind_predict(nb::module_& m) {
  nb::class_<ForestPredictor>(m, "ForestPredictor", "A forest packed for prediction.")
      .def(nb::init<const nb::dict&>(), "arrays"_a)
      .def("add", &ForestPredictor::add, "table"_a, "begin"_a, "end"_a, "raw"_a.noconvert(), "n_threads"_a)
      .def("add_binned", &ForestPredictor::add_binned, "matrix"_a, "begin"_a, "end"_a, "raw"_a.noconvert(),
           "n_threads"_a, "The same for rows of a binned table whose cut points the trees split at.")
      .def("apply_binned", &ForestPredictor::apply_binned, "matrix"_a, "begin"_a, "end"_a, "n_threads"_a)
      .def("apply", &ForestPredictor::apply, "table"_a, "begin"_a, "end"_a, "n_threads"_a);
}

}  // namespace polyleaf
