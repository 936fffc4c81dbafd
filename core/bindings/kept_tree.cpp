#include "bindings/kept_tree.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/forest.hpp"
#include "bindings/rooms.hpp"
#include "predict/binned_walk.hpp"
#include "predict/predictor.hpp"
#include "predict/tree_forest.hpp"

namespace polyleaf {
namespace {

enum class Shape : std::uint8_t { kFlat, kLeafValues, kOutputs };

// An array of the tree, which lives as long as anybody looks at it.
template <class T>
nb::object as_array(nb::handle self, const std::vector<T>& values, Shape shape) {
  const KeptTree& kept = nb::cast<const KeptTree&>(self);
  if (shape == Shape::kFlat)
    return nb::cast(nb::ndarray<nb::numpy, const T, nb::ndim<1>>(values.data(), {values.size()}, self));
  const std::size_t columns = shape == Shape::kLeafValues ? kept.width : kept.n_outputs;
  return nb::cast(
      nb::ndarray<nb::numpy, const T, nb::ndim<2>>(values.data(), {values.size() / columns, columns}, self));
}

template <class T>
void bind_array(nb::class_<KeptTree>& tree, const char* name, std::vector<T> GrownTree::* field, Shape shape) {
  tree.def_prop_ro(name, [field, shape](nb::handle self) {
    return as_array(self, nb::cast<const KeptTree&>(self).tree.*field, shape);
  });
}

template <class T>
void bind_gains(nb::class_<KeptTree>& tree, const char* name, std::vector<T> GrownTree::* field, Shape shape) {
  tree.def_prop_ro(name, [field, shape](nb::handle self) -> nb::object {
    const KeptTree& kept = nb::cast<const KeptTree&>(self);
    if (!kept.has_gains) return nb::none();
    return as_array(self, kept.tree.*field, shape);
  });
}

// Calls visit(name, field, shape) for the arrays that every tree has.
template <class Visit>
void each_array(Visit&& visit) {
  visit("feature", &GrownTree::feature, Shape::kFlat);
  visit("bin", &GrownTree::bin, Shape::kFlat);
  visit("threshold", &GrownTree::threshold, Shape::kFlat);
  visit("missing_left", &GrownTree::missing_left, Shape::kFlat);
  visit("category_begin", &GrownTree::category_begin, Shape::kFlat);
  visit("category_bits", &GrownTree::category_bits, Shape::kFlat);
  visit("left", &GrownTree::left, Shape::kFlat);
  visit("gain", &GrownTree::gain, Shape::kFlat);
  visit("cover", &GrownTree::cover, Shape::kFlat);
  visit("count", &GrownTree::count, Shape::kFlat);
  visit("leaf", &GrownTree::leaf, Shape::kFlat);
  visit("values", &GrownTree::values, Shape::kLeafValues);
  visit("outputs", &GrownTree::outputs, Shape::kLeafValues);
}

template <class T>
nb::object joined_arrays(const std::vector<const KeptTree*>& trees, std::vector<T> GrownTree::* field) {
  std::vector<T> values;
  std::vector<std::int64_t> sizes;
  sizes.reserve(trees.size());
  std::size_t size = 0;
  for (const KeptTree* kept : trees) size += (kept->tree.*field).size();
  values.reserve(size);
  for (const KeptTree* kept : trees) {
    const std::vector<T>& own = kept->tree.*field;
    values.insert(values.end(), own.begin(), own.end());
    sizes.push_back(static_cast<std::int64_t>(own.size()));
  }
  return nb::make_tuple(to_numpy(std::move(values)), to_numpy(std::move(sizes)));
}

nb::object joined(const std::vector<const KeptTree*>& trees, const std::string& name) {
  nb::object out;
  each_array([&](const char* of_field, auto field, Shape) {
    if (name == of_field) out = joined_arrays(trees, field);
  });
  expect(out.is_valid(), "joined: no array of this name");
  return out;
}

// The array of this name, of so many numbers.
template <class T>
std::vector<T> copied(const nb::dict& arrays, const char* name, std::size_t size) {
  const auto from = array_of<Vector<T>>(arrays, name);
  expect(from.shape(0) == size, "arrays of nodes differ in size");
  return {from.data(), from.data() + size};
}

// The splits of a tree that was grown elsewhere: what leaves have to be filled with is not there yet.
KeptTree splits_of(const nb::dict& arrays, std::size_t n_outputs) {
  const std::size_t n = array_of<Vector<std::int32_t>>(arrays, "feature").shape(0);
  const std::size_t n_words = array_of<Vector<std::uint32_t>>(arrays, "category_bits").shape(0);
  KeptTree kept{{}, n_outputs, n_outputs, false};
  GrownTree& tree = kept.tree;
  tree.feature = copied<std::int32_t>(arrays, "feature", n);
  tree.bin = copied<std::int32_t>(arrays, "bin", n);
  tree.threshold = copied<double>(arrays, "threshold", n);
  tree.missing_left = copied<std::uint8_t>(arrays, "missing_left", n);
  tree.category_begin = copied<std::int64_t>(arrays, "category_begin", n + 1);
  tree.category_bits = copied<std::uint32_t>(arrays, "category_bits", n_words);
  tree.left = copied<std::int32_t>(arrays, "left", n);
  tree.gain = copied<double>(arrays, "gain", n);
  tree.leaf = copied<std::int32_t>(arrays, "leaf", n);
  tree.count.assign(n, 0);
  const std::vector<std::int64_t>& words = tree.category_begin;
  expect(words.front() == 0 && words.back() == static_cast<std::int64_t>(n_words) &&
             std::is_sorted(words.begin(), words.end()),
         "category_begin does not fit the nodes");
  return kept;
}

// The tree as a forest, which is added to these scores.
TreeForest forest_for(const KeptTree& kept, std::size_t first_output, const OutMatrix<double>& raw,
                      std::size_t n_rows) {
  expect(!kept.tree.values.empty(), "tree: its leaves are not filled");
  expect(raw.shape(0) == n_rows, "raw: not as many rows as the table");
  expect(first_output <= raw.shape(1) && kept.n_outputs <= raw.shape(1) - first_output,
         "raw: not all outputs of the tree");
  return TreeForest(kept.tree, kept.width, static_cast<std::int32_t>(first_output));
}

void add_binned_rows(const KeptTree& kept, const BinnedMatrix& matrix, std::size_t first_output, OutMatrix<double>& raw,
                     int n_threads) {
  const TreeForest forest = forest_for(kept, first_output, raw, matrix.n_rows);
  nb::gil_scoped_release release;
  add_binned(forest.arrays(), matrix, 0, 1, raw.data(), raw.shape(1), n_threads);
}

void add_rows(const KeptTree& kept, const Table& table, std::size_t first_output, OutMatrix<double>& raw,
              int n_threads) {
  const MatrixView x = view_of(table);
  const TreeForest forest = forest_for(kept, first_output, raw, x.n_rows);
  for (const std::int32_t feature : kept.tree.feature)
    expect(feature < 0 || static_cast<std::size_t>(feature) < x.n_columns, "table: a feature is missing");
  nb::gil_scoped_release release;
  Predictor(forest.arrays()).add(x, 0, 1, raw.data(), raw.shape(1), n_threads);
}

}  // namespace

void bind_kept_tree(nb::module_& m) {
  nb::class_<KeptTree> tree(m, "KeptTree", "A grown tree in the memory of the core. Its arrays are to be read only.");
  tree.def_static("splits_of", &splits_of, "arrays"_a, "n_outputs"_a,
                  "The splits of a tree that another device has grown; its leaves are empty.");
  tree.def_static("joined", &joined, "trees"_a, "name"_a,
                  "The arrays of this name one after the other, flat, and how many numbers are of each tree.");
  each_array([&](const char* name, auto field, Shape shape) { bind_array(tree, name, field, shape); });
  bind_gains(tree, "gain_feature", &GrownTree::gain_feature, Shape::kFlat);
  bind_gains(tree, "output_gain", &GrownTree::output_gain, Shape::kOutputs);
  tree.def("add", &add_rows, "table"_a, "first_output"_a, "raw"_a.noconvert(), "n_threads"_a,
           "Adds it to the scores of some rows, to the outputs from this one on.")
      .def("add_binned", &add_binned_rows, "matrix"_a, "first_output"_a, "raw"_a.noconvert(), "n_threads"_a,
           "The same for rows of a binned table whose cut points the tree splits at.");
}

}  // namespace polyleaf
