#include "leaves/visited_leaves.hpp"

namespace polyleaf {

GrownTree finish_tree(const VisitedTree& visited, const VisitedLeaves& leaves, const GainTerms& terms) {
  const bool gathered = leaves.all_rows != nullptr;
  const std::vector<LeafRows>& places = visited.leaves();
  GrownTree tree = gathered ? visited.by_counts() : lay_out_tree(visited.matrix(), visited.order());
  tree.values.assign(leaves.values, leaves.values + places.size() * static_cast<std::size_t>(terms.n_outputs));
  tree.cover.assign(tree.feature.size(), 0.0);
  for (std::size_t leaf = 0; leaf < places.size(); ++leaf) {
    tree.cover[places[leaf].node] = leaves.cover[leaf];
    if (gathered) tree.count[places[leaf].node] = leaves.all_rows[leaf];
  }
  if (leaves.leaf_sums != nullptr) share_gains(terms, visited.order(), leaves.leaf_sums, tree);
  sum_up(tree);
  if (!gathered) place_unseen(visited.matrix(), visited.order(), tree);
  return tree;
}

}  // namespace polyleaf
