// What the searches of a tree's nodes have in common, wherever their histograms come from: the outputs, bounds and
// features of each node, the searches of its tiles of features, and the best of what they found.
#pragma once

#include <memory>
#include <vector>

#include "base/threads.hpp"
#include "growth/contract.hpp"
#include "growth/feature_sample.hpp"
#include "growth/node.hpp"
#include "search/joint_score.hpp"
#include "search/output_terms.hpp"
#include "search/tile_searches.hpp"
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
  // Nodes of no more rows are searched without a histogram.
  std::size_t few_rows() const { return few_rows_; }
  // Whether nodes have to know their sums even as leaves.
  bool needs_totals() const { return joint_ != nullptr; }

  // What a root, and the children of a split, have besides rows and sums; the sums of `left` and `parent` are known.
  void plant(Node& root);
  void branch(const Node& parent, Node& left, Node& right, int member);

  // Tells the searches of all threads of the team which node comes next.
  void start(const Node& node, Which which, const Team& team);
  TileSearch& search(Which which, int thread, const FeatureTile& tile) { return of(thread).searches[which].of(tile); }
  Found nothing_found() const { return Found(2 * matrix_.tiles.size()); }
  // Takes over the best of the splits found for one of the nodes.
  void accept(Node& node, Which which, Found& found, int member);

 private:
  struct OfThread {
    TileSearchPair searches[2];
    std::vector<std::uint8_t> features[2];  // of the nodes at hand, where they have their own
    JointScore::Scratch joint;
  };
  OfThread& of(int thread) { return threads_[static_cast<std::size_t>(thread)]; }

  const BinnedMatrix& matrix_;
  const OutputTerms& terms_;
  const RootMoments moments_;
  const std::unique_ptr<JointScore> joint_;  // null where scores are sums over outputs
  TileSearches searches_;
  FeatureSampler features_;
  std::vector<OfThread> threads_;
  std::size_t few_rows_ = 0;
};

}  // namespace polyleaf
