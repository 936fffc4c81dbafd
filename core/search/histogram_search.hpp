// The best split of a node by histograms over all features and outputs (Algorithms 1 and 2), with subtraction.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/buffer.hpp"
#include "base/threads.hpp"
#include "growth/feature_sample.hpp"
#include "growth/split_search.hpp"
#include "quantize/payload.hpp"
#include "search/category_split.hpp"
#include "search/joint_score.hpp"
#include "search/split.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

// A fixed number of histograms, the lowest free one first. Threads may share it.
class SlotPool {
 public:
  explicit SlotPool(int size);
  int acquire();  // -1: none is free
  void release(int& slot);
  int n_free() const;

 private:
  mutable std::mutex mutex_;
  std::vector<int> free_;  // descending
};

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
  HistogramSearch(const BinnedMatrix& matrix, const Payload& payload, const Rules& rules, const OutputTerms& terms,
                  const std::vector<std::uint32_t>& rows, const Options& options, Buffer<std::int32_t>& histograms);

  void search_root(Node& root) override;
  void search_children(Node& parent, Node& left, Node& right, const Team& team) override;
  void drop(Node& node) override { pool_.release(node.slot); }
  bool has_room() const override;
  bool side_by_side() const override { return true; }
  bool is_small(const Node& node) const override;

 private:
  struct ThreadScratch {
    Buffer<std::int32_t> histogram;
    Buffer<std::int32_t> packed;        // that of a tile whose rows are packed
    Buffer<std::int32_t> combinations;  // of the bins of a tile's groups
    NodeRows rows;
    SplitFinder::Scan built, derived;
    CategoryFinder::Scan built_categories, derived_categories;
    std::vector<std::uint8_t> built_features, derived_features;  // of the nodes at hand, where they have their own
    JointScore::Scratch joint;
  };

  int pool_size() const;
  bool keeps_histogram(const Node& node) const;
  ThreadScratch& scratch_of(int thread) { return scratch_[static_cast<std::size_t>(thread)]; }
  std::size_t work(const Node& node) const;
  std::vector<std::int32_t> sum_payload(const Node& node, const Team& team) const;
  std::int32_t* kept_histogram(int slot, const FeatureTile& tile, int output_tile);
  void evaluate_children(Node& parent, Node& small, Node& large, const Team& team);
  void evaluate_rows(Node& node, const Team& team);
  // The best splits of two nodes in each tile of features: those of a tile side by side.
  struct Found {
    std::vector<BestCandidate> best;
    std::vector<CategoryPartition> partitions;  // of tiles of categorical features
    explicit Found(std::size_t n_tiles) : best(2 * n_tiles), partitions(2 * n_tiles) {}
  };
  void forget_bars(const Team& team);
  void accept(Node& node, Found& found, std::size_t first, ThreadScratch& scratch);
  void evaluate(Node* built, Node* derived, int parent_slot, const Team& team);
  void evaluate_tile(std::size_t at, ThreadScratch& scratch, const Node& built, const Node* derived, int parent_slot,
                     Found& found);
  void build_histogram(std::size_t at, int output_tile, const Node& node, ThreadScratch& scratch,
                       std::int32_t* histogram) const;
  bool groups_pay(std::size_t at, std::size_t n_rows) const;
  void complete_frequent_bins(const FeatureTile& tile, const std::int32_t* totals, std::int32_t* histogram) const;

  const BinnedMatrix& matrix_;
  const Payload& payload_;
  const Rules& rules_;
  const std::vector<std::uint32_t>& rows_;
  const Options options_;
  const std::unique_ptr<JointScore> joint_;  // null where scores are sums over outputs
  const SplitFinder finder_;
  CategoryFinder categories_;
  Buffer<std::int32_t>& histograms_;
  SlotPool pool_;
  std::size_t histogram_size_ = 0;
  // Nodes of no more rows than this, about twice the bins of a feature, are searched without a histogram.
  std::size_t few_rows_ = 0;
  FeatureSampler features_;
  // Per feature tile: the positions of the tree's features, where they are not all.
  std::vector<std::vector<std::uint32_t>> positions_;
  std::vector<ThreadScratch> scratch_;
};

}  // namespace polyleaf
