#include "search/histogram_search.hpp"

#include <algorithm>
#include <utility>

#include "kernels/histogram.hpp"
#include "rules/pruning.hpp"

namespace polyleaf {
namespace {

// Histograms that stay free for a walk down to the leaves when open nodes are taken best first.
constexpr int kReserve = 16;
// A histogram that threads build together is cut into so many pieces for each of them, so that they end at about the
// same time, but not into pieces of fewer additions, nor of so few rows that adding up their bins costs more than it
// saves.
constexpr std::size_t kPiecesOfThread = 4;
constexpr std::size_t kLeastPiece = kParallelWork / 2;
constexpr std::size_t kLeastRowsOfBin = 4;
// Cells whose order is kept for pieces, 4 bytes each: those of all rows, where they are no more than this.
constexpr std::size_t kMostOrdered = std::size_t{1} << 23;

}  // namespace

HistogramSearch::HistogramSearch(const BinnedMatrix& matrix, const OutputTerms& terms,
                                 const std::vector<std::uint32_t>& rows, const SearchOptions& options,
                                 HistogramMemory& memory)
    : matrix_(matrix),
      terms_(terms),
      rules_(terms.rules),
      rows_(rows),
      n_threads_(std::max(1, options.n_threads)),
      memory_(memory),
      searches_(matrix, terms, options),
      builder_(matrix, terms.payload, rows, options.features.mask),
      layout_(matrix, terms.layout()),
      pool_(matrix, layout_,
            std::min(most_histograms(), affordable_histograms(layout_.size(), options.histogram_bytes)), memory.kept,
            searches_.remembers_sides() && !matrix.keeps_all_codes() ? &memory.sides : nullptr) {
  std::size_t largest = 0;
  for (const FeatureTile& tile : matrix_.tiles) largest = std::max<std::size_t>(largest, tile.n_slots());
  const std::size_t n_tiles = searches_.looks_again() ? static_cast<std::size_t>(terms.layout().n_tiles) : 1;
  if (memory_.threads.size() < static_cast<std::size_t>(n_threads_))
    memory_.threads.resize(static_cast<std::size_t>(n_threads_));
  for (int thread = 0; thread < n_threads_; ++thread) {
    builder_.fit(of(thread).build);
    of(thread).histogram.grow(n_tiles * largest * static_cast<std::size_t>(terms.layout().width));
  }
  const std::size_t n_cells = rows_.size() * matrix_.n_in_tiles();
  orders_pieces_ = n_threads_ > 1 && n_cells <= kMostOrdered && SortedRows::has_enough(terms.layout());
  if (orders_pieces_) memory_.order.grow(n_cells);
}

// Depth-first order keeps one histogram per level and thread, as far as a level has nodes, best-first order one per
// open node. Threads that build one together need some more.
std::size_t HistogramSearch::most_histograms() const {
  const auto threads = static_cast<std::size_t>(n_threads_);
  const auto levels = static_cast<std::size_t>(rules_.max_depth) + 1;
  std::size_t wanted = 0;
  if (leaves_are_scarce(rules_.max_depth, rules_.max_leaves))
    wanted = static_cast<std::size_t>(rules_.max_leaves);
  else
    wanted = std::max(levels, std::min(threads * levels, std::size_t{1} << std::min(rules_.max_depth, 30)));
  if (n_threads_ > 1) wanted += threads;
  return std::min(wanted, rows_.size() + 1);
}

bool HistogramSearch::has_room() const { return pool_.n_free() > std::min(rules_.max_depth, kReserve); }

// The children of a node just above the last level are leaves: nothing is subtracted from its histogram.
bool HistogramSearch::keeps_histogram(const Node& node) const {
  if (!may_split(node, rules_) || node.depth + 1 >= rules_.max_depth || searches_.has_few_rows(node.n_rows))
    return false;
  for (std::size_t at = 0; at < matrix_.tiles.size(); ++at)
    if (!builder_.has_few_cells(at, node.n_rows) || !has_few_to_sort(at, node.n_rows)) return true;
  return false;
}

// Of a tile in which few cells are listed for some rows, each feature that may be split has as many of them as a leaf
// has rows, and all rows are sorted by it. A histogram has its bins.
bool HistogramSearch::has_few_to_sort(std::size_t at, std::size_t n_rows) const {
  if (!searches_.can_search_rows()) return false;
  const FeatureTile& tile = matrix_.tiles[at];
  const double cells =
      static_cast<double>(tile.cells.slots.size()) * static_cast<double>(n_rows) / static_cast<double>(matrix_.n_rows);
  const double features = cells / std::max(1, rules_.min_samples_leaf);
  return features * static_cast<double>(n_rows) <= static_cast<double>(tile.n_slots());
}

// Additions of its histogram, and what the scan of one costs.
std::size_t HistogramSearch::work(const Node& node) const {
  return (node.n_rows * matrix_.features.size() + 4 * matrix_.n_slots) * terms_.layout().n_channels();
}

bool HistogramSearch::is_small(const Node& root) const { return work(root) < kParallelWork; }

void HistogramSearch::search_root(Node& root, const Team& team) {
  root.totals = builder_.sum_rows(root, team);
  searches_.plant(root);
  if (!may_split(root, rules_)) return;
  if (by_rows(root, team)) return evaluate_rows(root, team);
  if (keeps_histogram(root)) root.slot = pool_.acquire();
  evaluate({&root}, team);
}

void HistogramSearch::search_children(Node& parent, Node& left, Node& right, const Team& team) {
  Node& small = left.n_rows <= right.n_rows ? left : right;
  Node& large = left.n_rows <= right.n_rows ? right : left;
  const bool search = may_split(small, rules_) || may_split(large, rules_);
  if (search || searches_.needs_totals()) {
    small.totals = builder_.sum_rows(small, team);
    if (searches_.needs_totals())
      large.totals = parent.totals;
    else
      large.totals = std::move(parent.totals);
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
  if (parent_slot >= 0 && may_split(large, rules_) && !by_rows(large, team)) {
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
    if (by_rows(*child, team)) {
      evaluate_rows(*child, team);
      continue;
    }
    if (keeps_histogram(*child)) child->slot = pool_.acquire();
    evaluate({child}, team);
  }
}

void HistogramSearch::evaluate(const Siblings& nodes, const Team& team) {
  Evaluation evaluation{
      nodes, searches_.start(nodes.built, nodes.derived, team.member), nothing_found(team.member), {}, {}, {}};
  evaluation.search.nodes[NodeSearches::kBuilt].sides = pool_.sides(nodes.built->slot);
  evaluation.search.nodes[NodeSearches::kDerived].sides = pool_.sides(nodes.parent_slot);
  const bool worthwhile = work(*nodes.built) >= kParallelWork;
  if (worthwhile) cut_into_pieces(evaluation, team);
  const std::size_t n_tiles = matrix_.tiles.size();
  if (evaluation.part_slots.empty()) {
    team.run(worthwhile, n_tiles, [&](std::size_t tile, int thread) {
      if (builder_.uses(tile)) evaluate_tile(tile, thread, evaluation);
    });
  } else {
    const auto n_outputs = static_cast<std::size_t>(terms_.layout().n_tiles);
    if (orders_pieces_) sort_for_pieces(evaluation, team);
    team.run(true, n_tiles * n_outputs * evaluation.part_slots.size(),
             [&](std::size_t piece, int thread) { build_piece(piece, thread, evaluation); });
    for (int& slot : evaluation.part_slots)
      if (slot != nodes.built->slot) pool_.release(slot);
  }
  searches_.accept(*nodes.built, NodeSearches::kBuilt, evaluation.found, team.member);
  if (nodes.derived != nullptr) searches_.accept(*nodes.derived, NodeSearches::kDerived, evaluation.found, team.member);
}

void HistogramSearch::evaluate_rows(Node& node, const Team& team) {
  Found& found = nothing_found(team.member);
  NodeRows& rows = of(team.member).rows;
  rows.take(terms_.payload, rows_.data() + node.begin, node.n_rows, searches_.copies_rows(node.n_rows));
  const NodeSearches::Search search = searches_.start_rows(node, rows, team.member);
  const std::size_t gathers = node.n_rows * matrix_.features.size() * terms_.layout().n_channels();
  team.run(gathers >= kParallelGathers, matrix_.tiles.size(), [&](std::size_t at, int thread) {
    const FeatureTile& tile = matrix_.tiles[at];
    found[2 * at] = searches_.join(search, NodeSearches::kBuilt, thread, tile).search_rows(tile, rows);
  });
  searches_.accept(node, NodeSearches::kBuilt, found, team.member);
}

// A piece is one tile of features, one tile of outputs and a part of the rows:
//
//   | features 0: outputs 0: part 0, part 1, ... | outputs 1: ... | ... | features 1: ... | ...
//
// Each part of the rows has a slot; the first one becomes the node's histogram.
void HistogramSearch::cut_into_pieces(Evaluation& evaluation, const Team& team) {
  const Node& node = *evaluation.nodes.built;
  const std::size_t n_tiles = std::max<std::size_t>(1, matrix_.tiles.size());
  const auto n_outputs = static_cast<std::size_t>(terms_.layout().n_tiles);
  const std::size_t additions = node.n_rows * matrix_.n_in_tiles() * terms_.layout().n_channels();
  const std::size_t bins = matrix_.n_slots / std::max<std::size_t>(1, matrix_.n_in_tiles());
  const std::size_t n_pieces = std::min(kPiecesOfThread * static_cast<std::size_t>(team.size), additions / kLeastPiece);
  if (team.size == 1 || n_pieces <= n_tiles || builder_.goes_by_features(node.n_here())) return;
  const std::size_t n_parts = std::min((n_pieces + n_tiles * n_outputs - 1) / (n_tiles * n_outputs),
                                       std::max<std::size_t>(1, node.n_rows / (kLeastRowsOfBin * (bins + 1))));
  if (n_parts * n_outputs == 1) return;
  std::vector<int>& slots = evaluation.part_slots;
  if (node.slot >= 0) slots.push_back(node.slot);
  while (slots.size() < n_parts && has_room()) {
    const int slot = pool_.acquire();
    if (slot < 0) break;
    slots.push_back(slot);
  }
  if (slots.empty()) return;
  evaluation.n_missing = std::vector<std::atomic<int>>(matrix_.tiles.size());
  for (std::atomic<int>& one : evaluation.n_missing) one = static_cast<int>(n_outputs * slots.size());
}

// One order of the rows serves all tiles of outputs. That of a node stands where its rows stand among all rows.
void HistogramSearch::sort_for_pieces(Evaluation& evaluation, const Team& team) {
  const RowRange range = rows_of(*evaluation.nodes.built);
  std::vector<SortedRows>& sorted = evaluation.sorted;
  sorted.resize(matrix_.tiles.size());
  std::size_t n_chunks = 0;
  for (std::size_t at = 0; at < sorted.size(); ++at) {
    const FeatureTile& tile = matrix_.tiles[at];
    std::uint32_t* order = memory_.order.data() + rows_.size() * tile.first_feature + range.begin * tile.n_features();
    if (builder_.uses(at) && builder_.take_to_sort(at, range, evaluation.part_slots.size(), order, sorted[at]))
      n_chunks = sorted[at].n_chunks();
  }
  team.run(true, sorted.size() * n_chunks, [&](std::size_t task, int thread) {
    SortedRows& of_tile = sorted[task / n_chunks];
    if (of_tile.n_chunks() > 0) of_tile.sort(task % n_chunks, of(thread).codes);
  });
}

// Whoever builds the last piece of a tile of features goes on with the search in it.
void HistogramSearch::build_piece(std::size_t piece, int thread, Evaluation& evaluation) {
  const auto n_outputs = static_cast<std::size_t>(terms_.layout().n_tiles);
  const std::size_t n_parts = evaluation.part_slots.size(), part = piece % n_parts;
  const std::size_t at = piece / n_parts / n_outputs;
  const int output_tile = static_cast<int>(piece / n_parts % n_outputs);
  if (!builder_.uses(at)) return;
  const Node& node = *evaluation.nodes.built;
  const RowRange range{node.begin + node.n_here() * part / n_parts, node.begin + node.n_here() * (part + 1) / n_parts};
  const bool is_sorted = !evaluation.sorted.empty() && evaluation.sorted[at].n_chunks() > 0;
  const SortedPart sorted{is_sorted ? &evaluation.sorted[at] : nullptr, part};
  builder_.build(at, output_tile, range, sorted, of(thread).build,
                 pool_.at(evaluation.part_slots[part], at, output_tile));
  if (--evaluation.n_missing[at] == 0) evaluate_tile(at, thread, evaluation);
}

// By one thread.
bool HistogramSearch::sort(std::size_t at, const Node& node, HistogramMemory::OfThread& own) const {
  if (!builder_.take_to_sort(at, rows_of(node), 1, nullptr, own.sorted)) return false;
  for (std::size_t chunk = 0; chunk < own.sorted.n_chunks(); ++chunk) own.sorted.sort(chunk, own.codes);
  return true;
}

void HistogramSearch::add_up(std::size_t at, int output_tile, const Evaluation& evaluation) {
  const std::vector<int>& slots = evaluation.part_slots;
  for (std::size_t part = 1; part < slots.size(); ++part) {
    std::int32_t* to = pool_.at(slots[0], at, output_tile);
    const std::int32_t* from = pool_.at(slots[part], at, output_tile);
    builder_.each_used(
        at, [&](std::size_t first, std::size_t count) { histogram_kernels().add(to + first, from + first, count); });
  }
}

void HistogramSearch::evaluate_tile(std::size_t at, int thread, Evaluation& evaluation) {
  const Siblings& nodes = evaluation.nodes;
  const FeatureTile& tile = matrix_.tiles[at];
  const PayloadLayout& layout = terms_.layout();
  const std::size_t size = tile.n_slots() * static_cast<std::size_t>(layout.width);
  TileSearch& built = searches_.join(evaluation.search, NodeSearches::kBuilt, thread, tile);
  TileSearch& derived = searches_.join(evaluation.search, NodeSearches::kDerived, thread, tile);
  const bool search_built = may_split(*nodes.built, rules_);
  const bool is_there = !evaluation.part_slots.empty();
  const int slot = is_there ? evaluation.part_slots[0] : nodes.built->slot;
  std::int32_t* first = slot >= 0 ? pool_.at(slot, at, 0) : of(thread).histogram.data();
  const std::size_t stride = slot >= 0 ? pool_.stride() : built.looks_again() ? size : 0;
  NodeRows& rows = of(thread).rows;
  const bool few_cells = builder_.has_few_cells(at, nodes.built->n_here());
  if (few_cells) rows.take(terms_.payload, rows_.data() + nodes.built->begin, nodes.built->n_here());
  const bool by_rows = slot < 0 && search_built && few_cells && has_few_to_sort(at, nodes.built->n_here());
  const bool has_histogram = !by_rows && (!few_cells || slot >= 0 || search_built);
  SortedPart sorted;
  if (has_histogram && !is_there && sort(at, *nodes.built, of(thread))) sorted.rows = &of(thread).sorted;
  forget_sides(tile, evaluation, few_cells ? &rows : nullptr);
  for (int t = 0; t < layout.n_tiles; ++t) {
    std::int32_t* histogram = first + static_cast<std::size_t>(t) * stride;
    if (is_there)
      add_up(at, t, evaluation);
    else if (has_histogram)
      builder_.build(at, t, rows_of(*nodes.built), sorted, of(thread).build, histogram);
    if (has_histogram) builder_.complete(at, t, *nodes.built, histogram);
    if (has_histogram && search_built) built.add(tile, t, histogram);
    if (nodes.derived == nullptr) continue;
    std::int32_t* parent = pool_.at(nodes.parent_slot, at, t);
    if (few_cells)
      builder_.take_out(at, t, rows, *nodes.built, parent);
    else
      builder_.each_used(at, [&](std::size_t begin, std::size_t count) {
        histogram_kernels().subtract(parent + begin, histogram + begin, count);
      });
    derived.add(tile, t, parent);
  }
  if (search_built)
    evaluation.found[2 * at] = by_rows ? built.search_rows(tile, rows) : built.best(tile, {first, stride});
  if (nodes.derived != nullptr)
    evaluation.found[2 * at + 1] = derived.best(tile, {pool_.at(nodes.parent_slot, at, 0), pool_.stride()});
}

// Of features whose sides are others now: those of the cells that a node loses, where it loses some rows; else all.
void HistogramSearch::forget_sides(const FeatureTile& tile, const Evaluation& evaluation, const NodeRows* lost) const {
  for (const NodeSearches::Which which : {NodeSearches::kBuilt, NodeSearches::kDerived}) {
    const SideArrays& sides = evaluation.search.nodes[which].sides;
    if (!sides.any()) continue;
    if (which == NodeSearches::kBuilt || lost == nullptr) {
      for (std::size_t position = 0; position < tile.n_features(); ++position)
        sides.set(tile.first_feature + position, {});
      continue;
    }
    for (std::size_t i = 0; i < lost->size(); ++i)
      each_listed(tile, lost->row(i),
                  [&](std::size_t position, std::uint32_t) { sides.set(tile.first_feature + position, {}); });
  }
}

}  // namespace polyleaf
