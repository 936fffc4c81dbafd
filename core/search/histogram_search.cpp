#include "search/histogram_search.hpp"

#include <algorithm>

#include "kernels/histogram.hpp"
#include "rules/pruning.hpp"
#include "search/joint_finder.hpp"

namespace polyleaf {
namespace {

// Histograms that stay free for a walk down to the leaves when open nodes are taken best first.
constexpr int kReserve = 16;
// From so many additions on, a node is worth all threads at once.
constexpr std::size_t kLargeWork = 16 * kParallelWork;

}  // namespace

HistogramSearch::HistogramSearch(const BinnedMatrix& matrix, const OutputTerms& terms,
                                 const std::vector<std::uint32_t>& rows, const Options& options,
                                 Buffer<std::int32_t>& histograms)
    : matrix_(matrix),
      terms_(terms),
      rules_(terms.rules),
      rows_(rows),
      options_(options),
      joint_(make_joint_score(terms, options.sparse, options.monotone)),
      searches_(matrix, terms, joint_.get()),
      builder_(matrix, terms.payload, rows, options.features.mask),
      pool_(matrix, terms.layout(), most_histograms(), options.histogram_bytes, histograms),
      features_(options.features, matrix.features.size()),
      scratch_(static_cast<std::size_t>(std::max(1, options.n_threads))) {
  std::size_t largest = 0;
  for (const FeatureTile& tile : matrix_.tiles) largest = std::max<std::size_t>(largest, tile.n_slots());
  for (ThreadScratch& s : scratch_) {
    s.built = searches_.make();
    s.derived = searches_.make();
    s.build = builder_.make_scratch();
    const bool looks_again = s.built.numeric->looks_again();  // when all output tiles are done
    const std::size_t n_tiles = looks_again ? static_cast<std::size_t>(terms.layout().n_tiles) : 1;
    s.histogram = Buffer<std::int32_t>(n_tiles * largest * static_cast<std::size_t>(terms.layout().width));
  }
  const double bins = static_cast<double>(matrix.n_slots) / static_cast<double>(matrix.features.size());
  few_rows_ = static_cast<std::size_t>(scratch_[0].built.numeric->rows_per_bin() * bins);
}

// Depth-first order keeps one histogram per level, best-first order one per open node.
std::size_t HistogramSearch::most_histograms() const {
  const bool scarce = leaves_are_scarce(rules_.max_depth, rules_.max_leaves);
  const auto wanted = static_cast<std::size_t>(scarce ? rules_.max_leaves : rules_.max_depth + 1);
  return std::min(wanted, rows_.size() + 1);
}

bool HistogramSearch::has_room() const { return pool_.n_free() > std::min(rules_.max_depth, kReserve); }

// The children of a node just above the last level are leaves: nothing is subtracted from its histogram.
bool HistogramSearch::keeps_histogram(const Node& node) const {
  return may_split(node, rules_) && node.depth + 1 < rules_.max_depth && node.n_rows() > few_rows_;
}

// Additions of its histogram, and what the scan of one costs.
std::size_t HistogramSearch::work(const Node& node) const {
  return (node.n_rows() * matrix_.features.size() + 4 * matrix_.n_slots) * terms_.layout().n_channels();
}

bool HistogramSearch::is_small(const Node& node) const { return work(node) < kLargeWork; }

void HistogramSearch::search_root(Node& root) {
  const Team team{options_.n_threads, 0};
  root.totals = builder_.sum_rows(root, team);
  searches_.set_root(root.totals.data(), options_.moments);
  if (joint_ != nullptr) {
    root.leaf_outputs = joint_->outputs_of_root(root.totals.data(), scratch_[0].joint);
    joint_->bound_root(root.totals.data(), root.bounds);
  }
  features_.start(root);
  if (!may_split(root, rules_)) return;
  if (root.n_rows() <= few_rows_) return evaluate_rows(root, team);
  if (keeps_histogram(root)) root.slot = pool_.acquire();
  evaluate({&root}, team);
}

void HistogramSearch::search_children(Node& parent, Node& left, Node& right, const Team& team) {
  Node& small = left.n_rows() <= right.n_rows() ? left : right;
  Node& large = left.n_rows() <= right.n_rows() ? right : left;
  const bool search = may_split(small, rules_) || may_split(large, rules_);
  if (search || joint_ != nullptr) {
    small.totals = builder_.sum_rows(small, team);
    large.totals = parent.totals;
    for (std::size_t c = 0; c < small.totals.size(); ++c) large.totals[c] -= small.totals[c];
  }
  if (joint_ != nullptr) {
    joint_->outputs_of_children(left.totals.data(), parent.totals.data(), left.leaf_outputs, right.leaf_outputs,
                                scratch_of(team.member).joint);
    joint_->bound_children(left.totals.data(), parent.totals.data(),
                           ordering_feature(matrix_, parent.split.feature, parent.split.bin), parent.bounds,
                           left.bounds, right.bounds);
  }
  features_.inherit(parent, left, right);
  parent.totals = {};
  if (search)
    evaluate_children(parent, small, large, team);
  else
    drop(parent);
}

void HistogramSearch::evaluate_children(Node& parent, Node& small, Node& large, const Team& team) {
  const int parent_slot = parent.slot;
  parent.slot = -1;
  if (parent_slot >= 0 && may_split(large, rules_) && large.n_rows() > few_rows_) {
    if (keeps_histogram(small)) small.slot = pool_.acquire();
    evaluate({&small, &large, parent_slot}, team);
    large.slot = parent_slot;  // now holds the larger child's histogram
    if (!keeps_histogram(large)) pool_.release(large.slot);
    return;
  }
  int unused = parent_slot;
  pool_.release(unused);
  for (Node* child : {&small, &large}) {
    if (!may_split(*child, rules_)) continue;
    if (child->n_rows() <= few_rows_) {
      evaluate_rows(*child, team);
      continue;
    }
    if (keeps_histogram(*child)) child->slot = pool_.acquire();
    evaluate({child}, team);
  }
}

// Tells the searches of all threads of the team which node comes next. `features`: where those of the node are kept.
void HistogramSearch::start(const Node& node, std::vector<std::uint8_t>& features,
                            TileSearchPair ThreadScratch::* searches, const Team& team) {
  const SearchedNode searched{node.totals.data(), features_.mask(node, features), &node.bounds};
  const int first = team.size == 1 ? team.member : 0;
  for (int thread = first; thread < first + team.size; ++thread) (scratch_of(thread).*searches).start(searched);
}

void HistogramSearch::evaluate(const Siblings& nodes, const Team& team) {
  const std::size_t n_tiles = matrix_.tiles.size();
  Found found(2 * n_tiles);
  ThreadScratch& own = scratch_of(team.member);
  start(*nodes.built, own.built_features, &ThreadScratch::built, team);
  if (nodes.derived != nullptr) start(*nodes.derived, own.derived_features, &ThreadScratch::derived, team);
  team.run(work(*nodes.built) >= kParallelWork, n_tiles, [&](std::size_t tile, int thread) {
    if (builder_.uses(tile)) evaluate_tile(tile, scratch_of(thread), nodes, found);
  });
  accept(*nodes.built, found, 0, own);
  if (nodes.derived != nullptr) accept(*nodes.derived, found, 1, own);
}

void HistogramSearch::evaluate_rows(Node& node, const Team& team) {
  Found found(2 * matrix_.tiles.size());
  ThreadScratch& own = scratch_of(team.member);
  own.rows.take(terms_.payload, rows_.data() + node.begin, node.n_rows());
  start(node, own.built_features, &ThreadScratch::built, team);
  const std::size_t gathers = node.n_rows() * matrix_.features.size() * terms_.layout().n_channels();
  team.run(gathers >= kParallelGathers, matrix_.tiles.size(), [&](std::size_t at, int thread) {
    const FeatureTile& tile = matrix_.tiles[at];
    found[2 * at] = scratch_of(thread).built.of(tile).search_rows(tile, own.rows);
  });
  accept(node, found, 0, own);
}

void HistogramSearch::evaluate_tile(std::size_t at, ThreadScratch& scratch, const Siblings& nodes, Found& found) {
  const FeatureTile& tile = matrix_.tiles[at];
  const PayloadLayout& layout = terms_.layout();
  const std::size_t size = tile.n_slots() * static_cast<std::size_t>(layout.width);
  TileSearch& built = scratch.built.of(tile);
  TileSearch& derived = scratch.derived.of(tile);
  const bool search_built = may_split(*nodes.built, rules_);
  const bool keeps = nodes.built->slot >= 0;
  std::int32_t* first = keeps ? pool_.at(nodes.built->slot, tile, 0) : scratch.histogram.data();
  const std::size_t stride = keeps ? pool_.stride() : built.looks_again() ? size : 0;
  for (int t = 0; t < layout.n_tiles; ++t) {
    std::int32_t* histogram = first + static_cast<std::size_t>(t) * stride;
    builder_.build(at, t, *nodes.built, scratch.build, histogram);
    if (search_built) built.add(tile, t, histogram);
    if (nodes.derived == nullptr) continue;
    std::int32_t* parent = pool_.at(nodes.parent_slot, tile, t);
    histogram_kernels().subtract(parent, histogram, size);
    derived.add(tile, t, parent);
  }
  if (search_built) found[2 * at] = built.best(tile, {first, stride});
  if (nodes.derived != nullptr)
    found[2 * at + 1] = derived.best(tile, {pool_.at(nodes.parent_slot, tile, 0), pool_.stride()});
}

// Takes over the best of every second candidate: those of one node.
void HistogramSearch::accept(Node& node, Found& found, std::size_t first, ThreadScratch& scratch) {
  BestCandidate best;
  for (std::size_t at = first; at < found.size(); at += 2) best.merge(found[at].best);
  const double own_score = joint_ != nullptr
                               ? joint_->node(node.totals.data(), node.leaf_outputs, node.bounds, scratch.joint)
                               : terms_.node_score(node.totals.data());
  const std::size_t involved =
      node.leaf_outputs.empty() ? static_cast<std::size_t>(terms_.layout().n_outputs) : node.leaf_outputs.size();
  accept_split(node, best.chosen, own_score, involved, rules_);
  if (node.gain > 0)
    node.partition =
        std::move(found[2 * matrix_.features[static_cast<std::size_t>(node.split.feature)].tile + first].partition);
}

}  // namespace polyleaf
