#include "search/node_searches.hpp"

#include <algorithm>

#include "search/joint_finder.hpp"

namespace polyleaf {
namespace {

// A node whose two-sided outputs are known is searched without a histogram up to so many times the rows of others,
// divided by the share of outputs that are two-sided, and up to so many times at most.
constexpr std::size_t kTimesFew = 3;
constexpr std::size_t kMostTimesFew = 8;
// Its rows are copied, by each thread for a node of its own: so many numbers at most.
constexpr std::size_t kMostCopied = std::size_t{1} << 22;

// Where more outputs than that are two-sided, it does not pay to look at them first.
std::size_t most_two_sided(std::size_t n_outputs) { return 3 * n_outputs / 4; }

}  // namespace

NodeSearches::NodeSearches(const BinnedMatrix& matrix, const OutputTerms& terms, const SearchOptions& options)
    : matrix_(matrix),
      terms_(terms),
      moments_(options.moments),
      joint_(make_joint_score(terms, options.sparse, options.monotone)),
      searches_(matrix, terms, joint_.get()),
      features_(options.features, matrix.features.size()),
      threads_(static_cast<std::size_t>(std::max(1, options.n_threads))) {
  make_searches(threads_[0]);
  const double bins =
      static_cast<double>(matrix.n_slots) / static_cast<double>(std::max<std::size_t>(matrix.n_in_tiles(), 1));
  asks_for_sides_ = threads_[0].searches[kBuilt].numeric->asks_for_sides();
  few_rows_ = static_cast<std::size_t>(threads_[0].searches[kBuilt].numeric->rows_per_bin() * bins);
}

void NodeSearches::make_searches(OfThread& of_thread) const {
  for (TileSearchPair& searches : of_thread.searches) searches = searches_.make();
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

NodeSearches::Search NodeSearches::start(const Node* built, const Node* derived, int member) {
  Search search{{}, {built != nullptr, derived != nullptr}, ++n_searches_};
  for (const Which which : {kBuilt, kDerived}) {
    const Node* node = which == kBuilt ? built : derived;
    if (node == nullptr) continue;
    search.nodes[which] = {node->totals.data(), features_.mask(*node, of(member).features[which]), &node->bounds};
  }
  return search;
}

bool NodeSearches::copies_rows(std::size_t n_rows) const {
  return asks_for_sides_ && n_rows * terms_.layout().n_channels() <= kMostCopied;
}

// Where few outputs are two-sided, a node by its rows costs by these, and the histogram of a node by all.
bool NodeSearches::by_rows(const std::uint32_t* rows, std::size_t n_rows, int member) {
  if (n_rows <= few_rows_) return true;
  if (!copies_rows(n_rows) || n_rows > kMostTimesFew * few_rows_) return false;
  const auto n_outputs = static_cast<std::size_t>(terms_.layout().n_outputs);
  const std::size_t most = std::min(most_two_sided(n_outputs), kTimesFew * few_rows_ * n_outputs / n_rows);
  OfThread& own = of(member);
  own.rows.take(terms_.payload, rows, n_rows);
  return static_cast<std::size_t>(own.two_sided.count(terms_.layout(), own.rows, static_cast<int>(most))) <= most;
}

NodeSearches::Search NodeSearches::start_rows(const Node& node, const NodeRows& rows, int member) {
  Search search = start(&node, nullptr, member);
  if (!copies_rows(rows.size())) return search;
  TwoSidedOutputs& two_sided = of(member).two_sided;
  two_sided.take(terms_, searches_.estimates(), rows, node.totals.data());
  const auto n_outputs = static_cast<std::size_t>(terms_.layout().n_outputs);
  if (static_cast<std::size_t>(two_sided.n_outputs()) <= most_two_sided(n_outputs))
    search.nodes[kBuilt].two_sided = &two_sided;
  return search;
}

TileSearch& NodeSearches::join(const Search& search, Which which, int thread, const FeatureTile& tile) {
  OfThread& own = of(thread);
  if (own.joined != search.number) {
    if (own.searches[kBuilt].numeric == nullptr) make_searches(own);
    for (const Which one : {kBuilt, kDerived})
      if (search.is_wanted[one]) own.searches[one].start(search.nodes[one]);
    own.joined = search.number;
  }
  return own.searches[which].of(tile);
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
