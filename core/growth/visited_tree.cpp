#include "growth/visited_tree.hpp"

namespace polyleaf {

VisitedTree::VisitedTree(const BinnedMatrix& matrix, const std::vector<VisitedNode>& nodes, int max_leaves)
    : matrix_(matrix), nodes_(nodes.size()) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const VisitedNode& from = nodes[i];
    Node& to = nodes_[i];
    to.begin = from.begin;
    to.end = from.end;
    to.n_rows = to.n_here();
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

}  // namespace polyleaf
