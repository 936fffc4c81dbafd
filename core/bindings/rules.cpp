// The rules that every device compiles, for tests to hold beside the oracle.
#include <cstring>

#include "bindings/arrays.hpp"
#include "bindings/rooms.hpp"
#include "growth/pruning_bar.hpp"
#include "rules/acceptance.hpp"
#include "rules/curvature.hpp"
#include "rules/grid.hpp"
#include "rules/pruning.hpp"
#include "rules/routing.hpp"
#include "rules/visited_node.hpp"

namespace polyleaf {
namespace {

void bind_routing(nb::module_& m) {
  m.def(
      "goes_left_by_code",
      [](unsigned code, int bin, bool missing_left, unsigned missing_code) {
        return goes_left(split_by_code(bin, missing_left, missing_code), code);
      },
      "code"_a, "bin"_a, "missing_left"_a, "missing_code"_a);
  m.def(
      "goes_left_by_value",
      [](double value, double threshold, bool missing_left) { return !goes_right(value, threshold, !missing_left); },
      "value"_a, "threshold"_a, "missing_left"_a);
  m.def(
      "goes_left_by_category",
      [](double value, const Vector<std::uint32_t>& words, bool missing_left) {
        return category_goes_left(has_number(words.data(), words.shape(0), value), missing_left);
      },
      "value"_a, "words"_a, "missing_left"_a);
}

void bind_acceptance(nb::module_& m) {
  m.def("large_enough", &large_enough, "n_left"_a, "n_rows"_a, "min_samples_leaf"_a);
  m.def("heavy_enough", &heavy_enough, "left_weight"_a, "weight"_a, "min_child_weight"_a);
  m.def("accepted_gain", &accepted_gain, "children_score"_a, "own_score"_a, "n_outputs"_a, "min_split_gain"_a);
  m.def(
      "may_split",
      [](int depth, std::size_t n_rows, int max_depth, int max_leaves, int min_samples_leaf) {
        Rules rules{};
        rules.max_depth = max_depth;
        rules.max_leaves = max_leaves;
        rules.min_samples_leaf = min_samples_leaf;
        return may_split(depth, n_rows, rules);
      },
      "depth"_a, "n_rows"_a, "max_depth"_a, "max_leaves"_a, "min_samples_leaf"_a);
}

void bind_grid(nb::module_& m) {
  m.def("on_grid", &on_grid, "value"_a, "scale"_a, "weight"_a);
  m.def("lowest_exponent", &lowest_exponent, "x"_a);
  m.def("power_of_two", &power_of_two, "exponent"_a);
  m.def("unit_of_weights", &unit_of_weights, "lowest"_a, "total"_a, "n_rows"_a);
  m.def("grid_limit", &grid_limit, "bits"_a, "n_rows"_a, "weight"_a, "at_random"_a);
  m.def("grid_unit", &grid_unit, "limit"_a, "total"_a);
}

double raise_bar(PruningBar& bar, const Vector<std::uint8_t>& nodes) {
  expect(nodes.shape(0) % sizeof(VisitedNode) == 0, "the size of the nodes");
  for (std::size_t at = 0; at < nodes.shape(0); at += sizeof(VisitedNode)) {
    VisitedNode node;
    std::memcpy(&node, nodes.data() + at, sizeof node);
    if (node.gain > 0) bar.raise(node.path_minimum, node.score);
  }
  return bar.height();
}

}  // namespace

void bind_rules(nb::module_& m) {
  nb::class_<PruningBar>(m, "PruningBar", "The path minimum below which best-first growth never splits a node.")
      .def(nb::init<int>(), "max_leaves"_a)
      .def("raised_by", &raise_bar, "nodes"_a, "The bar once a device has searched these nodes, too.");
  nb::module_ rules = m.def_submodule("rules", "The rules that every device compiles (rules/*.hpp), one by one.");
  bind_routing(rules);
  bind_acceptance(rules);
  bind_grid(rules);
  rules.def("leaves_are_scarce", &leaves_are_scarce, "max_depth"_a, "max_leaves"_a);
  rules.def("path_minimum", &path_minimum, "of_parent"_a, "gain"_a);
  rules.def("is_hopeless", &is_hopeless, "path_minimum"_a, "bar"_a);
  rules.def("gains_are_equal", &gains_are_equal, "gain"_a, "larger"_a, "largest_score"_a);
  rules.def("soft_threshold", &soft_threshold, "gradient"_a, "alpha"_a);
  rules.def("score_term", &score_term, "gradient"_a, "denominator"_a);
  rules.def("leaf_value", &leaf_value, "gradient"_a, "denominator"_a);
  rules.def(
      "curvature", [](const std::string& rule, double p, double y) { return curvature(term_of(rule), p, y); }, "rule"_a,
      "p"_a, "y"_a);
  rules.def("term_of", [](const std::string& term, double x) { return term_of(term_of(term), x); }, "term"_a, "x"_a);
}

}  // namespace polyleaf
