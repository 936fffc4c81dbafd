// The best split of a node by histograms over all features and outputs (Algorithms 1 and 2), with subtraction.
#pragma once

#include <vector>

#include "base/buffer.hpp"
#include "base/threads.hpp"
#include "growth/split_search.hpp"
#include "quantize/payload.hpp"
#include "search/histogram_builder.hpp"
#include "search/histogram_pool.hpp"
#include "search/node_searches.hpp"
#include "search/output_terms.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

class HistogramSearch : public SplitSearch {
 public:
  // `histograms` is memory kept between trees.
  HistogramSearch(const BinnedMatrix& matrix, const OutputTerms& terms, const std::vector<std::uint32_t>& rows,
                  const SearchOptions& options, Buffer<std::int32_t>& histograms);

  void search_root(Node& root) override;
  void search_children(Node& parent, Node& left, Node& right, const Team& team) override;
  void drop(Node& node) override { pool_.release(node.slot); }
  bool has_room() const override;
  bool side_by_side() const override { return true; }
  bool is_small(const Node& node) const override;

 private:
  struct ThreadScratch {
    Buffer<std::int32_t> histogram;
    HistogramBuilder::Scratch build;
    NodeRows rows;
  };
  // Two siblings: one's histogram is built from its rows, the other's is their parent's without it. Or one node alone.
  struct Siblings {
    Node* built;
    Node* derived = nullptr;
    int parent_slot = -1;  // becomes the derived one's
  };
  using Found = NodeSearches::Found;

  std::size_t most_histograms() const;
  bool keeps_histogram(const Node& node) const;
  ThreadScratch& scratch_of(int thread) { return scratch_[static_cast<std::size_t>(thread)]; }
  std::size_t work(const Node& node) const;
  void evaluate_children(Node& parent, Node& small, Node& large, const Team& team);
  void evaluate_rows(Node& node, const Team& team);
  void evaluate(const Siblings& nodes, const Team& team);
  void evaluate_tile(std::size_t at, int thread, const Siblings& nodes, Found& found);

  const BinnedMatrix& matrix_;
  const OutputTerms& terms_;
  const Rules& rules_;
  const std::vector<std::uint32_t>& rows_;
  const int n_threads_;
  NodeSearches searches_;
  const HistogramBuilder builder_;
  const HistogramLayout layout_;
  HistogramPool pool_;
  const std::size_t few_rows_;  // nodes of no more rows are searched without a histogram
  std::vector<ThreadScratch> scratch_;
};

}  // namespace polyleaf
