#include "explain/leaf_paths.hpp"

#include <algorithm>

namespace polyleaf {
namespace {

// The share of the left child among the rows of both.
double left_share(const ForestArrays& forest, std::size_t left) {
  const auto share = [](double of_left, double of_right) {
    // Halves: the sum of two large numbers is still one.
    const double a = std::max(of_left, 0.0) / 2, b = std::max(of_right, 0.0) / 2;
    return a + b > 0 ? a / (a + b) : -1.0;
  };
  const double by_cover = share(forest.cover[left], forest.cover[left + 1]);
  if (by_cover >= 0) return by_cover;
  const double by_count =
      share(static_cast<double>(forest.count[left]), static_cast<double>(forest.count[left + 1]));
  return by_count >= 0 ? by_count : 0.5;
}

double share_of_child(const ForestArrays& forest, std::size_t left, bool right) {
  return right ? 1 - left_share(forest, left) : left_share(forest, left);
}

// Goes through a tree in depth-first order, the left child first: visit(way) with the way down to each node.
template <class Node, class Visit>
void walk_down(const ForestArrays& forest, std::size_t root, const std::vector<std::int32_t>& features, Visit&& visit) {
  std::vector<Node> way, open(1);
  std::vector<std::size_t> depth_of_open(1, 0);
  open[0].node = root;
  while (!open.empty()) {
    const Node node = open.back();
    way.resize(depth_of_open.back());
    open.pop_back();
    depth_of_open.pop_back();
    way.push_back(node);
    visit(way);
    if (forest.left[node.node] < 0) continue;
    const std::int32_t feature = forest.feature[node.node];
    const std::size_t left = root + static_cast<std::size_t>(forest.left[node.node]);
    Node child;
    child.parent = node.node;
    child.column = static_cast<std::uint32_t>(std::lower_bound(features.begin(), features.end(), feature) -
                                              features.begin());
    for (std::size_t depth = way.size() - 1; depth > 0 && child.above == 0; --depth)
      if (way[depth].column == child.column) child.above = static_cast<std::uint32_t>(depth);
    child.share_before = child.above > 0 ? way[child.above].share : 1.0;
    child.n_features = node.n_features + (child.above > 0 ? 0 : 1);
    for (const bool right : {true, false}) {  // the left one is on top
      const double share = share_of_child(forest, left, right);
      child.node = left + (right ? 1 : 0);
      child.right = right;
      child.share = child.share_before * share;
      child.of_rows = node.of_rows * share;
      open.push_back(child);
      depth_of_open.push_back(way.size());
    }
  }
}

}  // namespace

// A node on the way down, the root without a step before it.
struct LeafPaths::Node {
  std::size_t node = 0;         // among those of all trees
  std::size_t parent = 0;
  bool right = false;
  std::uint32_t column = 0;     // of the split above
  std::uint32_t above = 0;      // depth of the step before by the same feature
  double share = 1;             // of the splits by this feature down to here
  double share_before = 1;      // without the last of them
  double of_rows = 1;           // of all training rows
  std::uint32_t n_features = 0;  // distinct ones down to here
};

struct LeafPaths::Chosen {
  std::vector<std::int32_t> outputs;
  // Where in `outputs` the first one stands that is not below this one.
  std::size_t place(std::int64_t output) const {
    return static_cast<std::size_t>(std::lower_bound(outputs.begin(), outputs.end(), output) - outputs.begin());
  }
};

LeafPaths::LeafPaths(const ForestArrays& forest, std::size_t n_trees, const std::vector<std::int32_t>& outputs)
    : expected_(outputs.size(), 0.0), sparse_(forest.value_output != nullptr) {
  const Chosen chosen{outputs};
  find_features(forest, n_trees);
  for (std::size_t tree = 0; tree < n_trees; ++tree) add_tree(forest, tree, chosen);
  value_begin_.push_back(values_.size());
}

PathForest LeafPaths::view() const {
  PathForest view;
  view.trees = trees_.data();
  view.batches = batches_.data();
  view.steps = steps_.data();
  view.elements = elements_.data();
  view.runs = runs_.data();
  view.leaf_of_slot = leaf_of_slot_.data();
  view.tables = tables_.data();
  view.unfulfilled = unfulfilled_.data();
  view.sets = sets_.data();
  view.value_begin = value_begin_.data();
  view.values = values_.data();
  if (sparse_) view.value_output = value_output_.data();
  view.n_outputs = expected_.size();
  return view;
}

void LeafPaths::find_features(const ForestArrays& forest, std::size_t n_trees) {
  const auto end = static_cast<std::size_t>(forest.node_begin[n_trees]);
  for (std::size_t i = 0; i < end; ++i)
    if (forest.left[i] >= 0) features_.push_back(forest.feature[i]);
  std::sort(features_.begin(), features_.end());
  features_.erase(std::unique(features_.begin(), features_.end()), features_.end());
}

// One row for each number of points up to n, behind one another.
void LeafPaths::use_points(std::size_t n) {
  while (rules_.size() < n) {
    rules_.push_back(gauss_legendre(rules_.size() + 1));
    const Quadrature& rule = rules_.back();
    for (std::size_t q = 0; q < rule.point.size(); ++q) unfulfilled_.push_back(-rule.weight[q] / (1 - rule.point[q]));
  }
}

void LeafPaths::add_tree(const ForestArrays& forest, std::size_t tree, const Chosen& chosen) {
  const std::int64_t first = forest.tree_output[tree];
  const std::size_t low = sparse_ ? 0 : chosen.place(first);
  const std::size_t high = sparse_ ? chosen.outputs.size() : chosen.place(first + forest.tree_width[tree]);
  if (low == high) return;  // nobody asks for its outputs
  const auto root = static_cast<std::size_t>(forest.node_begin[tree]);

  std::size_t most = 0, depths = 1;
  walk_down<Node>(forest, root, features_, [&](const std::vector<Node>& way) {
    most = std::max<std::size_t>(most, way.back().n_features);
    depths = std::max(depths, way.size());
  });
  const std::size_t n_points = std::max<std::size_t>(1, (most + 1) / 2);
  use_points(n_points);
  trees_.push_back({batches_.size(), 0, steps_.size(), tables_.size(), n_points, depths, low, high - low});
  scratch_vectors_ = std::max(scratch_vectors_, depths * (2 + 2 * n_points));

  batches_.push_back({steps_.size(), 0, elements_.size(), runs_.size(), 0, leaf_of_slot_.size(), n_leaves_, 0});
  walk_down<Node>(forest, root, features_, [&](const std::vector<Node>& way) {
    if (open_leaves_.size() == kLeavesTogether) {
      close_batch(forest, tree, chosen);
      batches_.push_back({steps_.size(), 0, elements_.size(), runs_.size(), 0, leaf_of_slot_.size(), n_leaves_, 0});
    }
    if (way.size() > 1) add_step(forest, way, rules_[n_points - 1]);
    if (forest.left[way.back().node] < 0) add_leaf(way.back().node, way);
  });
  close_batch(forest, tree, chosen);
  trees_.back().batch_end = batches_.size();
}

void LeafPaths::add_step(const ForestArrays& forest, const std::vector<Node>& way, const Quadrature& rule) {
  const Node& node = way.back();
  const std::size_t parent = node.parent;
  PathStep step{};
  step.threshold = forest.threshold[parent];
  step.column = node.column;
  step.depth = static_cast<std::uint32_t>(way.size() - 1);
  step.above = node.above;
  step.set = -1;
  step.right = node.right;
  step.missing_right = forest.missing_left[parent] == 0;
  const auto n_words = static_cast<std::size_t>(forest.category_begin[parent + 1] - forest.category_begin[parent]);
  if (n_words > 0 && !step.right) {  // the left child comes first, and what it finds holds for both
    step.set = static_cast<std::int32_t>(sets_.size());
    sets_.push_back({forest.category_bits + forest.category_begin[parent], n_words});
  }
  steps_.push_back(step);

  const double z = node.share, before = node.share_before;
  const std::size_t n = rule.point.size();
  tables_.resize(tables_.size() + 4 * n);
  double* table = tables_.data() + tables_.size() - 4 * n;
  for (std::size_t q = 0; q < n; ++q) {
    const double t = rule.point[q];
    // The factor of the feature is z + t (1 - z) or z (1 - t); that of the steps before is taken back.
    const double fulfilled = z + t * (1 - z), fulfilled_before = before + t * (1 - before);
    table[q] = fulfilled / fulfilled_before;
    table[n + q] = z * (1 - t) / fulfilled_before;
    table[2 * n + q] = before > 0 ? z / before : 0.0;  // the product is 0 already
    table[3 * n + q] = rule.weight[q] * (1 - z) / fulfilled;
  }
}

void LeafPaths::add_leaf(std::size_t node, const std::vector<Node>& way) {
  open_leaves_.push_back({node, way.back().of_rows});
  std::uint32_t n_elements = 0;
  for (std::size_t depth = 1; depth < way.size(); ++depth) {
    bool last = true;  // by its feature
    for (std::size_t below = depth + 1; below < way.size() && last; ++below) last = way[below].above != depth;
    if (!last) continue;
    elements_.push_back({static_cast<std::uint32_t>(depth), static_cast<std::uint32_t>(open_leaves_.size() - 1)});
    open_columns_.push_back(way[depth].column);
    ++n_elements;
  }
  if (n_elements > 0) steps_.back().n_elements = n_elements;
}

// Gives the elements of a feature slots side by side, in the order of their leaves.
void LeafPaths::close_batch(const ForestArrays& forest, std::size_t tree, const Chosen& chosen) {
  LeafBatch& batch = batches_.back();
  batch.step_end = steps_.size();
  batch.n_leaves = open_leaves_.size();
  const std::size_t n_slots = open_columns_.size();
  most_slots_ = std::max(most_slots_, n_slots);
  std::vector<std::uint32_t> order(n_slots);
  for (std::size_t e = 0; e < n_slots; ++e) order[e] = static_cast<std::uint32_t>(e);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return open_columns_[a] < open_columns_[b]; });
  for (std::uint32_t slot = 0; slot < n_slots; ++slot) {
    PathElement& element = elements_[batch.element_begin + order[slot]];
    const std::uint32_t column = open_columns_[order[slot]];
    leaf_of_slot_.push_back(element.slot);
    element.slot = slot;
    if (runs_.size() == batch.run_begin || runs_.back().column != column) runs_.push_back({column, slot, slot});
    runs_.back().end = slot + 1;
  }
  batch.run_end = runs_.size();
  add_values(forest, tree, chosen);
  n_leaves_ += open_leaves_.size();
  open_leaves_.clear();
  open_columns_.clear();
}

void LeafPaths::add_values(const ForestArrays& forest, std::size_t tree, const Chosen& chosen) {
  const PathTree& of = trees_.back();
  const auto width = static_cast<std::size_t>(forest.tree_width[tree]);
  const auto value_of = [&](const OpenLeaf& leaf) { return forest.values + forest.value_begin[leaf.node]; };
  if (sparse_) {
    for (const OpenLeaf& leaf : open_leaves_) {
      value_begin_.push_back(values_.size());
      const std::int32_t* output = forest.value_output + forest.value_begin[leaf.node];
      for (std::size_t j = 0; j < width; ++j) {
        const std::size_t place = chosen.place(output[j]);
        if (place == chosen.outputs.size() || chosen.outputs[place] != output[j]) continue;
        const auto value = static_cast<double>(value_of(leaf)[j]);
        values_.push_back(value);
        value_output_.push_back(static_cast<std::uint32_t>(place));
        expected_[place] += leaf.share * value;
      }
    }
    return;
  }
  for (std::size_t leaf = 0; leaf < open_leaves_.size(); ++leaf) value_begin_.push_back(values_.size());
  for (std::size_t k = 0; k < of.n_outputs; k += kOutputsTogether) {
    const std::size_t together = std::min(kOutputsTogether, of.n_outputs - k);
    for (const OpenLeaf& leaf : open_leaves_)
      for (std::size_t j = k; j < k + together; ++j) {
        const std::size_t place = of.first_output + j;
        const auto value =
            static_cast<double>(value_of(leaf)[chosen.outputs[place] - forest.tree_output[tree]]);
        values_.push_back(value);
        expected_[place] += leaf.share * value;
      }
  }
}

}  // namespace polyleaf
