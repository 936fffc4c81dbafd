#include <tuple>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/rooms.hpp"
#include "predict/predictor.hpp"

namespace polyleaf {
namespace {

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

}  // namespace

void bind_predict(nb::module_& m) {
  nb::class_<ForestPredictor>(m, "ForestPredictor", "A forest packed for prediction.")
      .def(nb::init<Vector<std::int64_t>, Vector<std::int32_t>, Vector<double>, Vector<std::int32_t>,
                    Vector<std::uint8_t>, Vector<std::int64_t>, Vector<std::uint32_t>, Vector<std::int64_t>,
                    Vector<float>, Vector<std::int32_t>, Vector<std::int32_t>, Vector<std::int32_t>>(),
           nb::kw_only(), "node_begin"_a, "feature"_a, "threshold"_a, "left"_a, "missing_left"_a, "category_begin"_a,
           "category_bits"_a, "value_begin"_a, "values"_a, "value_output"_a, "tree_output"_a, "tree_width"_a)
      .def("add", &ForestPredictor::add, "table"_a, "begin"_a, "end"_a, "raw"_a.noconvert(), "n_threads"_a)
      .def("apply", &ForestPredictor::apply, "table"_a, "begin"_a, "end"_a, "n_threads"_a);
}

}  // namespace polyleaf
