// The best split of a node by histograms over all features and outputs (Algorithms 1 and 2), with subtraction.
#pragma once

#include <atomic>
#include <vector>

#include "base/buffer.hpp"
#include "base/threads.hpp"
#include "growth/split_search.hpp"
#include "quantize/payload.hpp"
#include "search/histogram_builder.hpp"
#include "search/histogram_pool.hpp"
#include "search/node_searches.hpp"
#include "search/output_terms.hpp"
#include "search/sorted_rows.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

// Memory kept from tree to tree.
struct HistogramMemory {
  struct OfThread {
    Buffer<std::int32_t> histogram;
    HistogramBuilder::Scratch build;
    SortedRows sorted;
    SortedRows::Codes codes;
    NodeRows rows;
    NodeSearches::Found found;
  };
  Buffer<std::int32_t> kept;  // of open nodes
  Buffer<float> sides;
  Buffer<std::uint32_t> order;  // of sorted rows, where threads build a histogram together
  std::vector<OfThread> threads;
};

class HistogramSearch : public SplitSearch {
 public:
  HistogramSearch(const BinnedMatrix& matrix, const OutputTerms& terms, const std::vector<std::uint32_t>& rows,
                  const SearchOptions& options, HistogramMemory& memory);

  void search_root(Node& root, const Team& team) override;
  void search_children(Node& parent, Node& left, Node& right, const Team& team) override;
  void drop(Node& node) override { pool_.release(node.slot); }
  bool has_room() const override;
  bool side_by_side() const override { return true; }
  bool is_small(const Node& root) const override;

 private:
  // Two siblings: one's histogram is built from its rows, the other's is their parent's without it. Or one node alone.
  struct Siblings {
    Node* built;
    Node* derived = nullptr;
    int parent_slot = -1;  // becomes the derived one's
  };
  using Found = NodeSearches::Found;
  // What the threads have in common that look for the splits of two siblings.
  struct Evaluation {
    Siblings nodes;
    NodeSearches::Search search;
    Found& found;
    // Where a histogram is built in pieces, for which part of the rows each slot is, and the pieces of each tile of
    // features that are not there yet. Empty: a thread builds all of a tile.
    std::vector<int> part_slots;
    std::vector<std::atomic<int>> n_missing;
    std::vector<SortedRows> sorted;  // of each tile of features, for all pieces; no chunks: rows are taken as they come
  };

  std::size_t most_histograms() const;
  bool keeps_histogram(const Node& node) const;
  bool has_few_to_sort(std::size_t at, std::size_t n_rows) const;
  bool sort(std::size_t at, const Node& node, HistogramMemory::OfThread& own) const;
  bool by_rows(const Node& node, const Team& team) {
    return searches_.by_rows(rows_.data() + node.begin, node.n_rows, team.member);
  }
  // For what a thread finds in the nodes that it evaluates, one after the other.
  Found& nothing_found(int member) {
    searches_.find_nothing(of(member).found);
    return of(member).found;
  }
  HistogramMemory::OfThread& of(int thread) { return memory_.threads[static_cast<std::size_t>(thread)]; }
  std::size_t work(const Node& node) const;
  void evaluate_children(Node& parent, Node& small, Node& large, const Team& team);
  void evaluate_rows(Node& node, const Team& team);
  void evaluate(const Siblings& nodes, const Team& team);
  void cut_into_pieces(Evaluation& evaluation, const Team& team);
  void sort_for_pieces(Evaluation& evaluation, const Team& team);
  void build_piece(std::size_t piece, int thread, Evaluation& evaluation);
  void evaluate_tile(std::size_t at, int thread, Evaluation& evaluation);
  void forget_sides(const FeatureTile& tile, const Evaluation& evaluation, const NodeRows* lost) const;
  void add_up(std::size_t at, int output_tile, const Evaluation& evaluation);

  const BinnedMatrix& matrix_;
  const OutputTerms& terms_;
  const Rules& rules_;
  const std::vector<std::uint32_t>& rows_;
  const int n_threads_;
  HistogramMemory& memory_;
  NodeSearches searches_;
  const HistogramBuilder builder_;
  const HistogramLayout layout_;
  HistogramPool pool_;
  bool orders_pieces_ = false;  // whether rows of pieces may be sorted
};

}  // namespace polyleaf
