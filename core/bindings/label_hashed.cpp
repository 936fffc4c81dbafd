#include <optional>

#include "bindings/arrays.hpp"
#include "bindings/rooms.hpp"
#include "label_hashed/leaves.hpp"
#include "label_hashed/mixtures.hpp"

namespace polyleaf {
namespace {

void mix(const SparseLabels& labels, const Vector<std::int32_t>& group, const Vector<double>& coefficient,
         OutMatrix<float>& mixtures, int n_threads) {
  const LabelHash hash{mixtures.shape(1), group.data(), coefficient.data()};
  expect(mixtures.shape(0) == labels.n_rows(), "mixtures: one row for each of the labels");
  expect(group.shape(0) == labels.n_outputs() && coefficient.shape(0) == labels.n_outputs(),
         "a group and a coefficient for each label");
  for (std::size_t label = 0; label < labels.n_outputs(); ++label)
    expect(group.data()[label] >= 0 && static_cast<std::size_t>(group.data()[label]) < hash.n_groups,
           "a group is out of range");
  nb::gil_scoped_release release;
  mix_gradients(labels, hash, mixtures.data(), n_threads);
}

nb::tuple fill(const SparseLabels& labels, const Vector<std::uint32_t>& leaf_of_row, std::size_t n_leaves,
               const std::optional<Vector<std::uint32_t>>& rows, const std::optional<Vector<double>>& weight,
               const LabelLeafRule& rule, int n_threads) {
  const std::size_t n_rows = labels.n_rows();
  expect(leaf_of_row.shape(0) == n_rows, "leaf_of_row: one for each row");
  for (std::size_t row = 0; row < n_rows; ++row) expect(leaf_of_row.data()[row] < n_leaves, "a leaf is out of range");
  LeafMembers members;
  members.n_rows = rows ? rows->shape(0) : n_rows;
  members.rows = rows ? rows->data() : nullptr;
  for (std::size_t i = 0; rows && i < members.n_rows; ++i) expect(members.rows[i] < n_rows, "a row is out of range");
  members.leaf_of_row = leaf_of_row.data();
  members.weight = data_or_null(weight, n_rows, "weight: one for each row");
  members.n_leaves = n_leaves;
  LabelLeaves leaves;
  {
    nb::gil_scoped_release release;
    leaves = fill_label_leaves(labels, members, rule, n_threads);
  }
  const std::size_t width = leaves.width;
  return nb::make_tuple(to_numpy(std::move(leaves.values), width), to_numpy(std::move(leaves.labels), width));
}

}  // namespace

void bind_label_hashed(nb::module_& m) {
  nb::class_<LabelLeafRule>(m, "LabelLeafRule", "How the values of leaves that hold labels come about.")
      .def(nb::new_([](std::size_t most, double reg_lambda, double reg_alpha, double rate) {
             return LabelLeafRule{most, reg_lambda, reg_alpha, rate};
           }),
           "most"_a, "reg_lambda"_a, "reg_alpha"_a, "learning_rate"_a);
  m.def("mix_label_gradients", &mix, "labels"_a, "group"_a, "coefficient"_a, "mixtures"_a.noconvert(), "n_threads"_a);
  m.def("fill_label_leaves", &fill, "labels"_a, "leaf_of_row"_a, "n_leaves"_a, "rows"_a.none(), "weight"_a.none(),
        "rule"_a, "n_threads"_a);
}

}  // namespace polyleaf
