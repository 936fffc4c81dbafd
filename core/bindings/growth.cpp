#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <tuple>
#include <vector>

#include "bindings/rooms.hpp"
#include "bindings/task.hpp"
#include "bindings/tree.hpp"
#include "growth/contract.hpp"
#include "growth/visited_tree.hpp"
#include "leaves/visited_leaves.hpp"
#include "quantize/fixed_point.hpp"
#include "quantize/payload.hpp"

namespace polyleaf {
namespace {

std::optional<int> limit_of(int limit) { return limit == kUnlimited ? std::nullopt : std::optional<int>(limit); }

int checked_limit(const std::optional<int>& limit, int least, const char* message) {
  expect(!limit || (*limit >= least && *limit <= kUnlimited), message);
  return limit.value_or(kUnlimited);
}

// A number of the rules under its own name.
template <class T>
void bind_rule(nb::class_<GrowSettings>& settings, const char* name, T Rules::* field) {
  settings.def_prop_rw(
      name, [field](const GrowSettings& s) { return s.rules.*field; },
      [field](GrowSettings& s, T value) { s.rules.*field = value; });
}

void bind_settings(nb::module_& m) {
  nb::class_<GrowSettings> settings(m, "GrowSettings", "How trees are grown, under the names of the parameters.");
  settings.def(nb::init<>())
      .def_prop_rw(
          "max_depth", [](const GrowSettings& s) { return limit_of(s.rules.max_depth); },
          [](GrowSettings& s, std::optional<int> value) {
            s.rules.max_depth = checked_limit(value, 0, "max_depth: 0 or more");
          },
          nb::for_setter("value"_a.none()))
      .def_prop_rw(
          "max_leaves", [](const GrowSettings& s) { return limit_of(s.rules.max_leaves); },
          [](GrowSettings& s, std::optional<int> value) {
            s.rules.max_leaves = checked_limit(value, 1, "max_leaves: 1 or more");
          },
          nb::for_setter("value"_a.none()))
      .def_prop_rw(
          "min_samples_leaf", [](const GrowSettings& s) { return s.rules.min_samples_leaf; },
          [](GrowSettings& s, int value) {
            expect(value >= 0, "min_samples_leaf: 0 or more");
            s.rules.min_samples_leaf = value;
          })
      .def_prop_rw(
          "sparse_leaves",
          [](const GrowSettings& s) { return s.sparse.k == 0 ? std::nullopt : std::optional<int>(s.sparse.k); },
          [](GrowSettings& s, std::optional<int> value) {
            expect(!value || *value >= 1, "sparse_leaves: 1 or more");
            s.sparse.k = value.value_or(0);
          },
          nb::for_setter("value"_a.none()))
      .def_prop_rw(
          "sparse_mode", [](const GrowSettings& s) { return s.sparse.restricted ? "restricted" : "unrestricted"; },
          [](GrowSettings& s, const std::string& value) {
            expect(value == "restricted" || value == "unrestricted", "sparse_mode: restricted or unrestricted");
            s.sparse.restricted = value == "restricted";
          })
      .def_prop_rw(
          "hessian", [](const GrowSettings& s) { return kHessianNames[static_cast<std::size_t>(s.hessian)]; },
          [](GrowSettings& s, const std::string& value) {
            const auto* found = std::find(std::begin(kHessianNames), std::end(kHessianNames), value);
            expect(found != std::end(kHessianNames), "hessian: diagonal, shared, exact_leaf or exact");
            s.hessian = static_cast<HessianUse>(found - std::begin(kHessianNames));
          })
      .def_prop_rw(
          "n_threads", [](const GrowSettings& s) { return s.n_threads; },
          [](GrowSettings& s, int value) {
            expect(value >= 1, "n_threads: 1 or more");
            s.n_threads = value;
          })
      .def_prop_rw(
          "histogram_precision", [](const GrowSettings& s) { return s.packed_sums ? "packed" : "full"; },
          [](GrowSettings& s, const std::string& value) {
            expect(value == "full" || value == "packed", "histogram_precision: full or packed");
            s.packed_sums = value == "packed";
          })
      .def_rw("bounded_influence", &GrowSettings::bounded_influence)
      .def_rw("histogram_bytes", &GrowSettings::histogram_bytes);
  m.def(
      "rules_of",
      [](const GrowSettings& s) { return nb::bytes(reinterpret_cast<const char*>(&s.rules), sizeof(Rules)); },
      "settings"_a, "The rules of a tree as every device reads them (rules/scoring.hpp).");
  bind_rule(settings, "min_split_gain", &Rules::min_split_gain);
  bind_rule(settings, "min_child_weight", &Rules::min_child_weight);
  bind_rule(settings, "reg_lambda", &Rules::reg_lambda);
  bind_rule(settings, "reg_alpha", &Rules::reg_alpha);
}

void bind_task(nb::module_& m) {
  nb::class_<TaskOfArrays>(m, "GrowTask", "A tree to be grown: what of, and what becomes of it.")
      .def(nb::init<const BinnedMatrix&, std::optional<Vector<double>>>(), "matrix"_a, "weight"_a.none(),
           nb::keep_alive<1, 2>())
      .def("set_leaf_gradients", &TaskOfArrays::set_leaf_gradients, "gradient"_a, "hessian"_a.none(), "hessian_rule"_a,
           "unit"_a, "label"_a.none())
      .def("set_made_gradients", &TaskOfArrays::set_made_gradients, "made"_a, "hessian_rule"_a, "unit"_a,
           nb::keep_alive<1, 2>())
      .def("set_split_gradients", &TaskOfArrays::set_split_gradients, "gradient"_a, "hessian"_a.none(),
           "curvature"_a.none(), "gain_weight"_a, "unit"_a)
      .def("set_shard", &TaskOfArrays::set_shard, "peers"_a, "n_all_rows"_a, "runs"_a)
      .def("set_sample", &TaskOfArrays::set_sample, "rows"_a, "weight"_a.none())
      .def("set_features", &TaskOfArrays::set_features, "mask"_a.none(), "level_share"_a, "node_share"_a, "key"_a)
      .def("set_interactions", &TaskOfArrays::set_interactions, "group_begin"_a, "group_feature"_a)
      .def("set_monotone", &TaskOfArrays::set_monotone, "sign"_a)
      .def("set_renewal", &TaskOfArrays::set_renewal, "level"_a, "y"_a, "column"_a, "cell_weight"_a.none())
      .def("set_raw", &TaskOfArrays::set_raw, "raw"_a.noconvert())
      .def("set_leaf_of_row", &TaskOfArrays::set_leaf_of_row, "leaf_of_row"_a.noconvert())
      .def("set_learning_rate", &TaskOfArrays::set_learning_rate, "learning_rate"_a)
      .def("set_output_gains", &TaskOfArrays::set_output_gains, "wanted"_a);
}

VisitedTree make_visited_tree(const BinnedMatrix& matrix, const Vector<std::uint8_t>& nodes,
                              std::optional<int> max_leaves) {
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
  return VisitedTree(matrix, copied, max_leaves.value_or(kUnlimited));
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
                        const GrowSettings& settings) {
  const std::size_t n_leaves = visited.leaves().size(), d = values.shape(1);
  expect(d > 0 && values.shape(0) == n_leaves && unit.shape(0) == d, "values: leaves x outputs");
  expect(cover.shape(0) == n_leaves, "cover: one value per leaf");
  if (leaf_sums)
    expect(leaf_sums->shape(0) == n_leaves && leaf_sums->shape(1) == 2 * d + 1, "leaf_sums: leaves x (2 outputs + 1)");
  const GainTerms terms{static_cast<int>(d),      unit.data(), own_hessian, settings.rules.reg_lambda,
                        settings.rules.reg_alpha, nullptr};
  const VisitedLeaves leaves{values.data(), cover.data(),
                             data_or_null(all_rows, n_leaves, "all_rows: one value per leaf"),
                             leaf_sums ? leaf_sums->data() : nullptr};
  GrownTree tree = finish_tree(visited, leaves, terms);
  return to_dict_with_gains(std::move(tree), d, leaf_sums ? d : 0);
}

}  // namespace

void bind_growth(nb::module_& m) {
  bind_settings(m);
  bind_task(m);
  m.def(
      "fixed_point",
      [](const std::optional<Vector<double>>& weight, std::size_t n_rows, int n_outputs, bool diagonal, bool shared,
         bool packed_sums) {
        expect(n_outputs > 0, "n_outputs: at least 1");
        const double* weights = data_or_null(weight, n_rows, "weight: one value per row");
        const HessianKind kind = diagonal ? HessianKind::kDiagonal
                                 : shared ? HessianKind::kShared
                                          : HessianKind::kCount;
        const PayloadLayout layout =
            lay_out_payload(n_outputs, kind, packed_sums && can_pack(n_rows, weights != nullptr));
        const FixedPoint grid(weights, n_rows, layout.sum_bits(), layout.packed);
        return std::make_tuple(grid.limit, grid.weight_unit, grid.unit(grid.total_weight), layout.packed);
      },
      "weight"_a.none(), "n_rows"_a, "n_outputs"_a, "diagonal"_a, "shared"_a, "packed_sums"_a,
      "Largest sum of integers; unit of the weights, and of their sum; whether numbers are rounded at random.");
  m.attr("VISITED_NODE_BYTES") = sizeof(VisitedNode);
  nb::class_<VisitedTree>(m, "VisitedTree", "The best-first tree of nodes that a device has visited.")
      .def(nb::new_(&make_visited_tree), "matrix"_a, "nodes"_a, "max_leaves"_a.none(), nb::keep_alive<1, 2>())
      .def("leaf_rows", &leaf_places, "First and last place of each leaf's rows, of shape (leaves, 2).")
      .def(
          "routes", [](const VisitedTree& tree) { return to_dict(tree.by_counts(), 1); },
          "The tree without values; missing values that a split did not see go with most rows.")
      .def("finish", &finish_visited, nb::kw_only(), "values"_a, "cover"_a, "all_rows"_a.none(), "leaf_sums"_a.none(),
           "own_hessian"_a, "unit"_a, "settings"_a);
}

}  // namespace polyleaf
