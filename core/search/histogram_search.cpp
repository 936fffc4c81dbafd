#include "search/histogram_search.hpp"

#include <algorithm>

#include "kernels/histogram.hpp"
#include "rules/pruning.hpp"

namespace polyleaf {
namespace {

// Histograms that stay free for a walk down to the leaves when open nodes are taken best first.
constexpr int kReserve = 16;
// From so many additions on, a node is worth all threads at once.
constexpr std::size_t kLargeWork = 16 * kParallelWork;

}  // namespace

HistogramSearch::HistogramSearch(const BinnedMatrix& matrix, const OutputTerms& terms,
                                 const std::vector<std::uint32_t>& rows, const SearchOptions& options,
                                 Buffer<std::int32_t>& histograms)
    : matrix_(matrix),
      terms_(terms),
      rules_(terms.rules),
      rows_(rows),
      n_threads_(options.n_threads),
      searches_(matrix, terms, options),
      builder_(matrix, terms.payload, rows, options.features.mask),
      layout_(matrix, terms.layout()),
      pool_(matrix, layout_,
            std::min(most_histograms(), affordable_histograms(layout_.size(), options.histogram_bytes)), histograms),
      few_rows_(searches_.few_rows()),
      scratch_(static_cast<std::size_t>(std::max(1, options.n_threads))) {
  std::size_t largest = 0;
  for (const FeatureTile& tile : matrix_.tiles) largest = std::max<std::size_t>(largest, tile.n_slots());
  const std::size_t n_tiles = searches_.looks_again() ? static_cast<std::size_t>(terms.layout().n_tiles) : 1;
  for (ThreadScratch& s : scratch_) {
    s.build = builder_.make_scratch();
    s.histogram = Buffer<std::int32_t>(n_tiles * largest * static_cast<std::size_t>(terms.layout().width));
  }
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
  return may_split(node, rules_) && node.depth + 1 < rules_.max_depth && node.n_rows > few_rows_;
}

// Additions of its histogram, and what the scan of one costs.
std::size_t HistogramSearch::work(const Node& node) const {
  return (node.n_rows * matrix_.features.size() + 4 * matrix_.n_slots) * terms_.layout().n_channels();
}

bool HistogramSearch::is_small(const Node& node) const { return work(node) < kLargeWork; }

void HistogramSearch::search_root(Node& root) {
  const Team team{n_threads_, 0};
  root.totals = builder_.sum_rows(root, team);
  searches_.plant(root);
  if (!may_split(root, rules_)) return;
  if (root.n_rows <= few_rows_) return evaluate_rows(root, team);
  if (keeps_histogram(root)) root.slot = pool_.acquire();
  evaluate({&root}, team);
}

void HistogramSearch::search_children(Node& parent, Node& left, Node& right, const Team& team) {
  Node& small = left.n_rows <= right.n_rows ? left : right;
  Node& large = left.n_rows <= right.n_rows ? right : left;
  const bool search = may_split(small, rules_) || may_split(large, rules_);
  if (search || searches_.needs_totals()) {
    small.totals = builder_.sum_rows(small, team);
    large.totals = parent.totals;
    for (std::size_t c = 0; c < small.totals.size(); ++c) large.totals[c] -= small.totals[c];
  }
  searches_.branch(parent, left, right, team.member);
  parent.totals = {};
  if (search)
    evaluate_children(parent, small, large, team);
  else
    drop(parent);
}

void HistogramSearch::evaluate_children(Node& parent, Node& small, Node& large, const Team& team) {
  const int parent_slot = parent.slot;
  parent.slot = -1;
  if (parent_slot >= 0 && may_split(large, rules_) && large.n_rows > few_rows_) {
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
    if (child->n_rows <= few_rows_) {
      evaluate_rows(*child, team);
      continue;
    }
    if (keeps_histogram(*child)) child->slot = pool_.acquire();
    evaluate({child}, team);
  }
}

void HistogramSearch::evaluate(const Siblings& nodes, const Team& team) {
  const std::size_t n_tiles = matrix_.tiles.size();
  Found found = searches_.nothing_found();
  searches_.start(*nodes.built, NodeSearches::kBuilt, team);
  if (nodes.derived != nullptr) searches_.start(*nodes.derived, NodeSearches::kDerived, team);
  team.run(work(*nodes.built) >= kParallelWork, n_tiles, [&](std::size_t tile, int thread) {
    if (builder_.uses(tile)) evaluate_tile(tile, thread, nodes, found);
  });
  searches_.accept(*nodes.built, NodeSearches::kBuilt, found, team.member);
  if (nodes.derived != nullptr) searches_.accept(*nodes.derived, NodeSearches::kDerived, found, team.member);
}

void HistogramSearch::evaluate_rows(Node& node, const Team& team) {
  Found found = searches_.nothing_found();
  NodeRows& rows = scratch_of(team.member).rows;
  rows.take(terms_.payload, rows_.data() + node.begin, node.n_rows);
  searches_.start(node, NodeSearches::kBuilt, team);
  const std::size_t gathers = node.n_rows * matrix_.features.size() * terms_.layout().n_channels();
  team.run(gathers >= kParallelGathers, matrix_.tiles.size(), [&](std::size_t at, int thread) {
    const FeatureTile& tile = matrix_.tiles[at];
    found[2 * at] = searches_.search(NodeSearches::kBuilt, thread, tile).search_rows(tile, rows);
  });
  searches_.accept(node, NodeSearches::kBuilt, found, team.member);
}

void HistogramSearch::evaluate_tile(std::size_t at, int thread, const Siblings& nodes, Found& found) {
  const FeatureTile& tile = matrix_.tiles[at];
  const PayloadLayout& layout = terms_.layout();
  const std::size_t size = tile.n_slots() * static_cast<std::size_t>(layout.width);
  ThreadScratch& scratch = scratch_of(thread);
  TileSearch& built = searches_.search(NodeSearches::kBuilt, thread, tile);
  TileSearch& derived = searches_.search(NodeSearches::kDerived, thread, tile);
  const bool search_built = may_split(*nodes.built, rules_);
  const bool keeps = nodes.built->slot >= 0;
  std::int32_t* first = keeps ? pool_.at(nodes.built->slot, at, 0) : scratch.histogram.data();
  const std::size_t stride = keeps ? pool_.stride() : built.looks_again() ? size : 0;
  for (int t = 0; t < layout.n_tiles; ++t) {
    std::int32_t* histogram = first + static_cast<std::size_t>(t) * stride;
    builder_.build(at, t, *nodes.built, scratch.build, histogram);
    builder_.complete(at, t, *nodes.built, histogram);
    if (search_built) built.add(tile, t, histogram);
    if (nodes.derived == nullptr) continue;
    std::int32_t* parent = pool_.at(nodes.parent_slot, at, t);
    histogram_kernels().subtract(parent, histogram, size);
    derived.add(tile, t, parent);
  }
  if (search_built) found[2 * at] = built.best(tile, {first, stride});
  if (nodes.derived != nullptr)
    found[2 * at + 1] = derived.best(tile, {pool_.at(nodes.parent_slot, at, 0), pool_.stride()});
}

}  // namespace polyleaf
