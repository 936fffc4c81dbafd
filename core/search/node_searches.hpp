// What the searches of a tree's nodes have in common, wherever their histograms come from: the outputs, bounds and
// features of each node, the searches of its tiles of features, and the best of what they found.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/threads.hpp"
#include "growth/contract.hpp"
#include "growth/feature_sample.hpp"
#include "growth/node.hpp"
#include "search/joint_score.hpp"
#include "search/output_terms.hpp"
#include "search/tile_searches.hpp"
#include "search/two_sided.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

struct SearchOptions {
  SparseLeaves sparse;
  FeatureSample features;
  std::size_t histogram_bytes = 0;  // memory for histograms kept for subtraction
  int n_threads = 1;
  RootMoments moments;                    // only needed where features are categorical
  const std::int8_t* monotone = nullptr;  // features x outputs; null: no constraints
};

class NodeSearches {
 public:
  // Two nodes are searched at a time, siblings: one whose histogram is built, and one whose histogram is derived.
  enum Which : std::uint8_t { kBuilt, kDerived };
  // The best splits of the two in each tile of features: those of a tile side by side.
  using Found = std::vector<FoundSplit>;

  NodeSearches(const BinnedMatrix& matrix, const OutputTerms& terms, const SearchOptions& options);

  // Whether searches look at histograms once more when those of all tiles of outputs have been added.
  bool looks_again() const { return threads_[0].searches[kBuilt].numeric->looks_again(); }
  // Whether a node of so many rows is searched without a histogram.
  bool has_few_rows(std::size_t n_rows) const { return n_rows <= few_rows_; }
  // The same, where that depends on what the rows are.
  bool by_rows(const std::uint32_t* rows, std::size_t n_rows, int member);
  // Whether nodes have to know their sums even as leaves.
  bool needs_totals() const { return joint_ != nullptr; }

  // What a root, and the children of a split, have besides rows and sums; the sums of `left` and `parent` are known.
  void plant(Node& root);
  void branch(const Node& parent, Node& left, Node& right, int member);

  // A search for the splits of two siblings, or of one node, that threads may join.
  struct Search {
    SearchedNode nodes[2];
    bool is_wanted[2];
    std::uint64_t number;  // no two are alike
  };
  // Null: not wanted. It ends when `member` starts another one.
  Search start(const Node* built, const Node* derived, int member);
  // The same for a node by its rows.
  Search start_rows(const Node& node, const NodeRows& rows, int member);
  // Whether so many rows must be copies then.
  bool copies_rows(std::size_t n_rows) const;
  // The search of a tile by a thread, which joins if it has not yet.
  TileSearch& join(const Search& search, Which which, int thread, const FeatureTile& tile);
  void find_nothing(Found& found) const { found.assign(2 * matrix_.tiles.size(), {}); }
  // Takes over the best of the splits found for one of the nodes.
  void accept(Node& node, Which which, Found& found, int member);

 private:
  struct OfThread {
    TileSearchPair searches[2];
    std::uint64_t joined = 0;               // the number of a search
    std::vector<std::uint8_t> features[2];  // of the nodes at hand, where they have their own
    JointScore::Scratch joint;
    NodeRows rows;              // of a node that is asked about
    TwoSidedOutputs two_sided;  // of a node by its rows
  };
  // Threads make theirs when they first join: of a small tree, most never do.
  void make_searches(OfThread& of_thread) const;
  OfThread& of(int thread) { return threads_[static_cast<std::size_t>(thread)]; }

  const BinnedMatrix& matrix_;
  const OutputTerms& terms_;
  const RootMoments moments_;
  const std::unique_ptr<JointScore> joint_;  // null where scores are sums over outputs
  TileSearches searches_;
  FeatureSampler features_;
  std::vector<OfThread> threads_;
  std::atomic<std::uint64_t> n_searches_{0};
  std::size_t few_rows_ = 0;
  bool asks_for_sides_ = false;
};

}  // namespace polyleaf
