// The best split of a node when gradients are sparse (GBDT-sparse): thousands of outputs, a few per row.
//
// Each node's active outputs are numbered compactly (node_labels.hpp), and each feature is searched straight from the
// node's rows in the order of their bins (feature_search.hpp): no histogram is kept, and nothing is subtracted. The
// Hessian is the row's weight.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "growth/contract.hpp"
#include "growth/feature_sample.hpp"
#include "growth/split_search.hpp"
#include "label_sparse/candidate_scores.hpp"
#include "label_sparse/feature_search.hpp"
#include "label_sparse/gradients.hpp"
#include "label_sparse/node_labels.hpp"
#include "rules/scoring.hpp"
#include "search/category_order.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

class LabelSplitSearch : public SplitSearch {
 public:
  LabelSplitSearch(const GrowTask& task, const GrowSettings& settings, const LabelGradients& gradients,
                   const std::vector<std::uint32_t>& rows);

  void search_root(Node& root, const Team& team) override;
  void search_children(Node& parent, Node& left, Node& right, const Team& team) override;
  void drop(Node&) override {}
  bool has_room() const override { return true; }
  bool side_by_side() const override { return true; }
  bool is_small(const Node& node) const override;

 private:
  // What a thread needs for itself.
  struct OfThread {
    OfThread(const LabelSplitSearch& search, const SparseLeaves& sparse);

    NodeLabels left, right;
    FeatureSearch features;
    std::vector<std::int32_t> number_of;  // per output: -1
    std::vector<std::uint8_t> mask;
    std::uint64_t joined = 0;  // the search it has a hand in
    LabelTerms terms;
  };

  // Sums of a node's rows and, where it may be split, all that its search needs.
  void take(const Node& node, NodeLabels& labels, OfThread& own) const;
  double inverse(std::int64_t weight) const;
  // What the outputs of a leaf score that holds all rows of the node.
  double own_score(const Node& node, const NodeLabels& labels, OfThread& own) const;
  void search(Node& node, const NodeLabels& labels, const Team& team);
  std::vector<std::int32_t> choose(const std::vector<double>& of_terms, const LabelTerms& terms) const;
  CategoryNoise noise_of_root() const;

  const BinnedMatrix& matrix_;
  const LabelGradients& gradients_;
  const Rules& rules_;
  const SparseLeaves sparse_;
  const std::vector<std::uint32_t>& rows_;
  FeatureSampler features_;
  const CategoryNoise noise_;
  std::atomic<std::uint64_t> n_searches_{0};
  std::vector<OfThread> threads_;
};

}  // namespace polyleaf
