// The best split of a node by histograms over all features and outputs (Algorithms 1 and 2), with subtraction.
#pragma once

#include <memory>
#include <vector>

#include "base/buffer.hpp"
#include "base/threads.hpp"
#include "growth/feature_sample.hpp"
#include "growth/split_search.hpp"
#include "quantize/payload.hpp"
#include "search/histogram_builder.hpp"
#include "search/histogram_pool.hpp"
#include "search/joint_score.hpp"
#include "search/output_terms.hpp"
#include "search/tile_searches.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

class HistogramSearch : public SplitSearch {
 public:
  struct Options {
    SparseLeaves sparse;
    FeatureSample features;
    std::size_t histogram_bytes = 0;  // memory for histograms kept for subtraction
    int n_threads = 1;
    RootMoments moments;                    // only needed where features are categorical
    const std::int8_t* monotone = nullptr;  // features x outputs; null: no constraints
  };
  // `histograms` is memory kept between trees.
  HistogramSearch(const BinnedMatrix& matrix, const OutputTerms& terms, const std::vector<std::uint32_t>& rows,
                  const Options& options, Buffer<std::int32_t>& histograms);

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
    TileSearchPair built, derived;
    std::vector<std::uint8_t> built_features, derived_features;  // of the nodes at hand, where they have their own
    JointScore::Scratch joint;
  };
  // Two siblings: one's histogram is built from its rows, the other's is their parent's without it. Or one node alone.
  struct Siblings {
    Node* built;
    Node* derived = nullptr;
    int parent_slot = -1;  // becomes the derived one's
  };
  // The best splits of two nodes in each tile of features: those of a tile side by side.
  using Found = std::vector<FoundSplit>;

  std::size_t most_histograms() const;
  bool keeps_histogram(const Node& node) const;
  ThreadScratch& scratch_of(int thread) { return scratch_[static_cast<std::size_t>(thread)]; }
  std::size_t work(const Node& node) const;
  void evaluate_children(Node& parent, Node& small, Node& large, const Team& team);
  void evaluate_rows(Node& node, const Team& team);
  void evaluate(const Siblings& nodes, const Team& team);
  void evaluate_tile(std::size_t at, ThreadScratch& scratch, const Siblings& nodes, Found& found);
  void start(const Node& node, std::vector<std::uint8_t>& features, TileSearchPair ThreadScratch::* searches,
             const Team& team);
  void accept(Node& node, Found& found, std::size_t first, ThreadScratch& scratch);

  const BinnedMatrix& matrix_;
  const OutputTerms& terms_;
  const Rules& rules_;
  const std::vector<std::uint32_t>& rows_;
  const Options options_;
  const std::unique_ptr<JointScore> joint_;  // null where scores are sums over outputs
  TileSearches searches_;
  const HistogramBuilder builder_;
  HistogramPool pool_;
  std::size_t few_rows_ = 0;  // nodes of no more rows are searched without a histogram
  FeatureSampler features_;
  std::vector<ThreadScratch> scratch_;
};

}  // namespace polyleaf
