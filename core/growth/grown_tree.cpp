#include "growth/grown_tree.hpp"

#include <algorithm>
#include <limits>

#include "base/threads.hpp"
#include "rules/routing.hpp"

namespace polyleaf {

GrownTree lay_out_tree(const BinnedMatrix& matrix, const Order& order) {
  GrownTree tree;
  tree.left = order.left;
  const std::size_t n_nodes = order.nodes.size();
  tree.count.reserve(n_nodes);
  tree.leaf.reserve(n_nodes);
  tree.feature.reserve(n_nodes);
  tree.bin.reserve(n_nodes);
  tree.gain.reserve(n_nodes);
  tree.missing_left.reserve(n_nodes);
  tree.threshold.reserve(n_nodes);
  int n_leaves = 0;
  for (std::size_t i = 0; i < order.nodes.size(); ++i) {
    const Node& node = *order.nodes[i];
    const bool is_leaf = order.left[i] < 0;
    tree.count.push_back(static_cast<std::int64_t>(node.n_rows));
    tree.leaf.push_back(is_leaf ? n_leaves++ : -1);
    tree.feature.push_back(is_leaf ? -1 : node.split.feature);
    tree.bin.push_back(is_leaf ? -1 : node.split.bin);
    tree.gain.push_back(is_leaf ? 0.0 : node.gain);
    tree.missing_left.push_back(!is_leaf && node.split.missing_left ? 1 : 0);
    double threshold = 0.0;
    if (!is_leaf && node.partition.empty()) {
      const auto& cuts = matrix.features[static_cast<std::size_t>(node.split.feature)].cuts;
      const auto bin = static_cast<std::size_t>(node.split.bin);
      // After the last cut only missing values go right.
      threshold = bin < cuts.size() ? cuts[bin] : std::numeric_limits<double>::infinity();
    }
    tree.threshold.push_back(threshold);
    if (is_leaf) tree.outputs.insert(tree.outputs.end(), node.leaf_outputs.begin(), node.leaf_outputs.end());
  }
  return tree;
}

std::vector<LeafRows> leaf_rows(const Order& order) {
  std::vector<LeafRows> leaves;
  leaves.reserve(order.nodes.size() / 2 + 1);
  for (std::size_t i = 0; i < order.nodes.size(); ++i)
    if (order.left[i] < 0) leaves.push_back({i, order.nodes[i]->begin, order.nodes[i]->end});
  return leaves;
}

std::vector<LeafRows> gather_all_rows(const BinnedMatrix& matrix, int n_threads, std::vector<std::uint32_t>& rows,
                                      GrownTree& tree) {
  constexpr std::size_t kBlockRows = 2048;
  std::vector<std::int32_t> leaf_of(matrix.n_rows);
  parallel_for(n_threads, (matrix.n_rows + kBlockRows - 1) / kBlockRows, [&](std::size_t block, int) {
    const std::size_t end = std::min(matrix.n_rows, (block + 1) * kBlockRows);
    for (std::size_t row = block * kBlockRows; row < end; ++row)
      leaf_of[row] = static_cast<std::int32_t>(find_leaf(matrix, row, tree));
  });
  std::vector<LeafRows> leaves;
  for (std::size_t node = 0; node < tree.left.size(); ++node)
    if (tree.left[node] < 0) leaves.push_back({node, 0, 0});
  for (const std::int32_t leaf : leaf_of) ++leaves[static_cast<std::size_t>(leaf)].end;
  std::size_t begin = 0;
  for (LeafRows& leaf : leaves) {
    const std::size_t n = leaf.end;
    tree.count[leaf.node] = static_cast<std::int64_t>(n);
    leaf.begin = leaf.end = begin;
    begin += n;
  }
  rows.resize(matrix.n_rows);
  for (std::size_t row = 0; row < matrix.n_rows; ++row)
    rows[leaves[static_cast<std::size_t>(leaf_of[row])].end++] = static_cast<std::uint32_t>(row);
  return leaves;
}

void sum_up(GrownTree& tree) {
  for (std::size_t i = tree.left.size(); i-- > 0;) {
    if (tree.left[i] < 0) continue;
    const auto left = static_cast<std::size_t>(tree.left[i]);
    tree.cover[i] = tree.cover[left] + tree.cover[left + 1];
    tree.count[i] = tree.count[left] + tree.count[left + 1];
  }
}

void place_unseen(const BinnedMatrix& matrix, const Order& order, GrownTree& tree) {
  for (std::size_t i = 0; i < order.nodes.size(); ++i) {
    if (tree.left[i] < 0 || order.nodes[i]->split.missing_seen) continue;
    const auto left = static_cast<std::size_t>(tree.left[i]);
    tree.missing_left[i] = tree.cover[left] >= tree.cover[left + 1] ? 1 : 0;
  }
  tree.category_begin.reserve(order.nodes.size() + 1);
  tree.category_begin.assign(1, 0);
  tree.category_bits.clear();
  for (std::size_t i = 0; i < order.nodes.size(); ++i) {
    const std::size_t begin = tree.category_bits.size();
    if (tree.left[i] >= 0 && !order.nodes[i]->partition.empty()) {
      const auto& categories = matrix.features[static_cast<std::size_t>(tree.feature[i])].categories;
      const CategoryPartition& partition = order.nodes[i]->partition;
      for (const std::uint32_t bin : tree.missing_left[i] != 0 ? partition.right : partition.left)
        add_category(tree.category_bits, begin, categories[bin]);
    }
    tree.category_begin.push_back(static_cast<std::int64_t>(tree.category_bits.size()));
  }
}

std::size_t find_leaf(const BinnedMatrix& matrix, std::size_t row, const GrownTree& tree) {
  std::size_t at = 0;
  while (tree.left[at] >= 0) {
    const auto feature = static_cast<std::size_t>(tree.feature[at]);
    const std::uint32_t code = matrix.code(row, feature);
    const FeatureBins& bins = matrix.features[feature];
    const bool missing_left = tree.missing_left[at] != 0;
    bool left;
    if (bins.categorical) {
      const auto begin = static_cast<std::size_t>(tree.category_begin[at]);
      const std::size_t n_words = static_cast<std::size_t>(tree.category_begin[at + 1]) - begin;
      const bool in_set = code != bins.missing_code() &&
                          has_category(tree.category_bits.data() + begin, n_words, bins.categories[code]);
      left = category_goes_left(in_set, missing_left);
    } else {
      left = goes_left(split_by_code(tree.bin[at], missing_left, bins.missing_code()), code);
    }
    at = static_cast<std::size_t>(tree.left[at]) + (left ? 0 : 1);
  }
  return static_cast<std::size_t>(tree.leaf[at]);
}

}  // namespace polyleaf
