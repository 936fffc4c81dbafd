#include "search/node_searches.hpp"

#include <algorithm>

#include "search/joint_finder.hpp"

namespace polyleaf {

NodeSearches::NodeSearches(const BinnedMatrix& matrix, const OutputTerms& terms, const SearchOptions& options)
    : matrix_(matrix),
      terms_(terms),
      moments_(options.moments),
      joint_(make_joint_score(terms, options.sparse, options.monotone)),
      searches_(matrix, terms, joint_.get()),
      features_(options.features, matrix.features.size()),
      threads_(static_cast<std::size_t>(std::max(1, options.n_threads))) {
  for (OfThread& one : threads_)
    for (TileSearchPair& searches : one.searches) searches = searches_.make();
  const double bins =
      static_cast<double>(matrix.n_slots) / static_cast<double>(std::max<std::size_t>(matrix.n_in_tiles(), 1));
  few_rows_ = static_cast<std::size_t>(threads_[0].searches[kBuilt].numeric->rows_per_bin() * bins);
}

void NodeSearches::plant(Node& root) {
  searches_.set_root(root.totals.data(), moments_);
  if (joint_ != nullptr) {
    root.leaf_outputs = joint_->outputs_of_root(root.totals.data(), of(0).joint);
    joint_->bound_root(root.totals.data(), root.bounds);
  }
  features_.start(root);
}

void NodeSearches::branch(const Node& parent, Node& left, Node& right, int member) {
  if (joint_ != nullptr) {
    joint_->outputs_of_children(left.totals.data(), parent.totals.data(), left.leaf_outputs, right.leaf_outputs,
                                of(member).joint);
    joint_->bound_children(left.totals.data(), parent.totals.data(),
                           ordering_feature(matrix_, parent.split.feature, parent.split.bin), parent.bounds,
                           left.bounds, right.bounds);
  }
  features_.inherit(parent, left, right);
}

void NodeSearches::start(const Node& node, Which which, const Team& team) {
  const SearchedNode searched{node.totals.data(), features_.mask(node, of(team.member).features[which]), &node.bounds};
  const int first = team.size == 1 ? team.member : 0;
  for (int thread = first; thread < first + team.size; ++thread) of(thread).searches[which].start(searched);
}

void NodeSearches::accept(Node& node, Which which, Found& found, int member) {
  BestCandidate best;
  for (std::size_t at = which; at < found.size(); at += 2) best.merge(found[at].best);
  const double own_score = joint_ != nullptr
                               ? joint_->node(node.totals.data(), node.leaf_outputs, node.bounds, of(member).joint)
                               : terms_.node_score(node.totals.data());
  const std::size_t involved =
      node.leaf_outputs.empty() ? static_cast<std::size_t>(terms_.layout().n_outputs) : node.leaf_outputs.size();
  accept_split(node, best.chosen, own_score, involved, terms_.rules);
  if (node.gain > 0)
    node.partition =
        std::move(found[2 * matrix_.features[static_cast<std::size_t>(node.split.feature)].tile + which].partition);
}

}  // namespace polyleaf
