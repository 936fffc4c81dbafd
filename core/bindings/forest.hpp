// A forest as Python passes it.
#pragma once

#include <string>

#include "bindings/arrays.hpp"
#include "predict/forest_arrays.hpp"

namespace polyleaf {

// The array of this name.
template <class Array>
inline Array array_of(const nb::dict& arrays, const char* name) {
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

  // Values that name their output.
  std::size_t n_sparse_values() const { return value_output_.shape(0); }

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

}  // namespace polyleaf
