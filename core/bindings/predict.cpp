#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/rooms.hpp"
#include "predict/binned_walk.hpp"
#include "predict/predictor.hpp"

namespace polyleaf {
namespace {

// The array of this name.
template <class Array>
Array array_of(const nb::dict& arrays, const char* name) {
  Array out;
  if (!arrays.contains(name) || !nb::try_cast(arrays[name], out))
    throw std::invalid_argument(std::string(name) + ": missing, or no array of this kind");
  return out;
}

// Flat arrays of a forest by their names, which stay alive with it.
class ArraysOfForest {
 public:
  explicit ArraysOfForest(const nb::dict& arrays)
      : node_begin_(array_of<Vector<std::int64_t>>(arrays, "node_begin")),
        feature_(array_of<Vector<std::int32_t>>(arrays, "feature")),
        threshold_(array_of<Vector<double>>(arrays, "threshold")),
        left_(array_of<Vector<std::int32_t>>(arrays, "left")),
        missing_left_(array_of<Vector<std::uint8_t>>(arrays, "missing_left")),
        category_begin_(array_of<Vector<std::int64_t>>(arrays, "category_begin")),
        category_bits_(array_of<Vector<std::uint32_t>>(arrays, "category_bits")),
        value_begin_(array_of<Vector<std::int64_t>>(arrays, "value_begin")),
        values_(array_of<Vector<float>>(arrays, "values")),
        value_output_(array_of<Vector<std::int32_t>>(arrays, "value_output")),
        tree_output_(array_of<Vector<std::int32_t>>(arrays, "tree_output")),
        tree_width_(array_of<Vector<std::int32_t>>(arrays, "tree_width")) {}

  ForestArrays checked() const {
    ForestArrays out;
    out.n_trees = tree_output_.shape(0);
    out.n_nodes = feature_.shape(0);
    expect(node_begin_.shape(0) == out.n_trees + 1 && tree_width_.shape(0) == out.n_trees,
           "arrays of trees differ in size");
    expect(threshold_.shape(0) == out.n_nodes && left_.shape(0) == out.n_nodes &&
               missing_left_.shape(0) == out.n_nodes && value_begin_.shape(0) == out.n_nodes,
           "arrays of nodes differ in size");
    expect(category_begin_.shape(0) == out.n_nodes + 1 && category_begin_.data()[0] == 0 &&
               category_begin_.data()[out.n_nodes] == static_cast<std::int64_t>(category_bits_.shape(0)),
           "category_begin does not fit the nodes");
    for (std::size_t i = 0; i < out.n_nodes; ++i)
      expect(category_begin_.data()[i] <= category_begin_.data()[i + 1], "category_begin must ascend");
    out.category_begin = category_begin_.data();
    out.category_bits = category_bits_.data();
    out.node_begin = node_begin_.data();
    out.feature = feature_.data();
    out.threshold = threshold_.data();
    out.left = left_.data();
    out.missing_left = missing_left_.data();
    out.value_begin = value_begin_.data();
    out.values = values_.data();
    expect(value_output_.shape(0) == 0 || value_output_.shape(0) == values_.shape(0), "value_output: one per value");
    if (value_output_.shape(0) > 0) out.value_output = value_output_.data();
    out.tree_output = tree_output_.data();
    out.tree_width = tree_width_.data();
    return out;
  }

 private:
  Vector<std::int64_t> node_begin_;
  Vector<std::int32_t> feature_;
  Vector<double> threshold_;
  Vector<std::int32_t> left_;
  Vector<std::uint8_t> missing_left_;
  Vector<std::int64_t> category_begin_;
  Vector<std::uint32_t> category_bits_;
  Vector<std::int64_t> value_begin_;
  Vector<float> values_;
  Vector<std::int32_t> value_output_;
  Vector<std::int32_t> tree_output_;
  Vector<std::int32_t> tree_width_;
};

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
      .def("apply", &ForestPredictor::apply, "table"_a, "begin"_a, "end"_a, "n_threads"_a);
}

}  // namespace polyleaf
