// The best split of a node when gradients are sparse (GBDT-sparse): thousands of outputs, a few per row.
//
// Each node's active outputs are numbered compactly, and each feature is scanned straight from the node's rows in the
// order of their bins: no histogram is kept, and nothing is subtracted. The Hessian is the row's weight.
#pragma once

#include <cstdint>
#include <vector>

#include "growth/contract.hpp"
#include "growth/feature_sample.hpp"
#include "growth/split_search.hpp"
#include "label_sparse/gradients.hpp"
#include "rules/scoring.hpp"
#include "search/category_order.hpp"
#include "search/joint_score.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

class LabelSplitSearch : public SplitSearch {
 public:
  LabelSplitSearch(const GrowTask& task, const GrowSettings& settings, const LabelGradients& gradients,
                   const std::vector<std::uint32_t>& rows);

  void search_root(Node& root) override;
  void search_children(Node& parent, Node& left, Node& right, const Team& team) override;
  void drop(Node&) override {}
  bool has_room() const override { return true; }
  bool side_by_side() const override { return false; }  // nodes share the numbering of outputs
  bool is_small(const Node&) const override { return false; }

 private:
  // A node's active outputs, ascending, and its rows' gradients in their numbering.
  struct Compact {
    std::vector<std::int32_t> outputs;
    std::vector<std::int32_t> totals;
    std::int64_t weight = 0;
    std::vector<std::size_t> row_begin;  // of the node's rows
    std::vector<std::int32_t> position;
    std::vector<std::int32_t> value;
    std::vector<double> factor, alpha;
  };
  struct Scratch {
    std::vector<std::int32_t> left, missing, with_missing;
    std::vector<std::uint32_t> bin_begin, by_bin, order;
    JointScore::Scratch terms;
  };

  Compact compact(const Node& node);
  double compute_terms(const Compact& node, const std::int32_t* left, std::int64_t left_weight, Scratch& s) const;
  double score(const Compact& node, const std::int32_t* left, std::int64_t left_weight, double enough,
               Scratch& s) const;
  void search(Node& node, const Compact& sums);
  // `partition` is set where the feature is categorical.
  BestCandidate best_of_feature(const Node& node, const Compact& sums, std::size_t feature, Scratch& s,
                                CategoryPartition& partition) const;
  // Returns what the best split would score by chance.
  double put_bins_in_order(const Node& node, const Compact& sums, Scratch& s) const;
  CategoryNoise noise_of_root() const;
  double inverse(std::int64_t weight) const;
  std::vector<std::int32_t> choose(const std::vector<double>& terms, const std::vector<std::int32_t>& outputs,
                                   Scratch& s) const;

  const BinnedMatrix& matrix_;
  const LabelGradients& gradients_;
  const Rules& rules_;
  const SparseLeaves sparse_;
  const std::vector<std::uint32_t>& rows_;
  FeatureSampler features_;
  std::vector<std::uint8_t> node_features_;
  const int n_threads_;
  const CategoryNoise noise_;
  std::vector<std::int32_t> position_of_;  // per output: its number in the node at hand, or -1
  std::vector<Scratch> scratch_;
};

}  // namespace polyleaf
