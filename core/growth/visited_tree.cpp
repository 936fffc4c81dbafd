#include "growth/visited_tree.hpp"

namespace polyleaf {

VisitedTree::VisitedTree(const BinnedMatrix& matrix, const std::vector<VisitedNode>& nodes, int max_leaves)
    : matrix_(matrix), nodes_(nodes.size()) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const VisitedNode& from = nodes[i];
    Node& to = nodes_[i];
    to.begin = from.begin;
    to.end = from.end;
    to.left = from.left;
    to.right = from.left < 0 ? -1 : from.left + 1;
    to.gain = from.gain;
    to.split = {from.score, from.feature, from.bin, (from.flags & kMissingLeft) != 0, (from.flags & kMissingSeen) != 0};
  }
  order_ = replay(nodes_, max_leaves);
  leaves_ = leaf_rows(order_);
}

GrownTree VisitedTree::by_counts() const {
  GrownTree tree = lay_out_tree(matrix_, order_);
  tree.cover.assign(tree.count.begin(), tree.count.end());
  place_unseen(matrix_, order_, tree);
  return tree;
}

GrownTree VisitedTree::finish(const float* values, const double* cover, const std::int64_t* all_rows,
                              const GainTerms& terms, const double* leaf_sums) const {
  GrownTree tree = all_rows != nullptr ? by_counts() : lay_out_tree(matrix_, order_);
  tree.values.assign(values, values + leaves_.size() * static_cast<std::size_t>(terms.n_outputs));
  tree.cover.assign(tree.feature.size(), 0.0);
  for (std::size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
    tree.cover[leaves_[leaf].node] = cover[leaf];
    if (all_rows != nullptr) tree.count[leaves_[leaf].node] = all_rows[leaf];
  }
  if (leaf_sums != nullptr) share_gains(terms, order_, leaf_sums, tree);
  sum_up(tree);
  if (all_rows == nullptr) place_unseen(matrix_, order_, tree);
  return tree;
}

}  // namespace polyleaf
