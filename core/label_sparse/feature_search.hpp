// The best split of a node with sparse gradients by the features of one tile.
//
// The bins of a feature are added up from its ends, up to the bin with the most rows, which is never visited: what lies
// beyond a cut is the node's sums minus these.
//
//   bins    | 0 | 1 | 2 |  3 (most rows)  | 4 | 5 |
//   cuts      ->  ->  ->                 <-  <-
//
// A cut costs as much as the gradients that it moves from one side to the other, and a bound on its score.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "growth/category_partition.hpp"
#include "label_sparse/bin_rows.hpp"
#include "label_sparse/candidate_scores.hpp"
#include "label_sparse/node_labels.hpp"
#include "rules/scoring.hpp"
#include "search/category_order.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

// The best candidate of a tile, and the categories on its sides.
struct LabelSplit {
  BestCandidate best;
  CategoryPartition partition;
};

class FeatureSearch {
 public:
  FeatureSearch(const BinnedMatrix& matrix, const LabelGradients& gradients, const Rules& rules,
                const SparseLeaves& sparse, const CategoryNoise& noise)
      : matrix_(matrix), gradients_(gradients), rules_(rules), noise_(noise), scores_(gradients, rules, sparse) {}

  // Begins with a node, which must outlive its search, of these rows. Candidates that score less than `enough` are not
  // looked for.
  void start(const NodeLabels& node, const std::uint32_t* rows, double enough);
  // `mask`: 1 for each feature that may be split by; null: all.
  LabelSplit best(const FeatureTile& tile, const std::uint8_t* mask);

 private:
  // Some rows of the node: how many, and what they weigh.
  struct Amount {
    std::size_t count = 0;
    std::int64_t weight = 0;
    Amount operator+(const Amount& other) const { return {count + other.count, weight + other.weight}; }
    Amount operator-(const Amount& other) const { return {count - other.count, weight - other.weight}; }
  };
  // A bin that holds rows of the node, and what it and those before it hold.
  struct Bin {
    std::uint32_t slot;
    Amount own, through;
  };
  enum class Side { kLeft, kRight };

  void list_bins(const FeatureTile& tile, std::size_t position);
  void sum_up();
  Amount amount(std::uint32_t slot) const;
  void search_ordered(LabelSplit& found);
  void search_one_against_rest(LabelSplit& found);
  // Cuts whose left or right side is added up, with missing values on it or not.
  void search_from(Side side, bool with_missing, LabelSplit& found);
  void clear_sums();
  void add(std::uint32_t slot);
  template <class Change>
  void each_cell(std::uint32_t slot, Change&& change);
  // Offers a candidate of which the sums at hand are one side. `left`: the rows to the left, but for missing ones.
  void offer(std::size_t place, bool missing_left, const Amount& left, Side side, double less, LabelSplit& found);
  // Puts the bins of a categorical feature in order; what the best split would score by chance.
  double put_in_order();

  const BinnedMatrix& matrix_;
  const LabelGradients& gradients_;
  const Rules& rules_;
  const CategoryNoise& noise_;
  CandidateScores scores_;
  const NodeLabels* node_ = nullptr;
  const std::uint32_t* rows_ = nullptr;
  double bar_ = 0.0;                   // what a candidate of the node is known to score
  std::vector<std::uint32_t> places_;  // per label: its place among the outputs in ascending order; where it is needed
  BinRows bin_rows_;
  // Of the feature at hand.
  const FeatureTile* tile_ = nullptr;
  std::size_t position_ = 0;
  std::vector<Bin> bins_;
  Amount missing_;
  double by_chance_ = 0.0;
  std::vector<std::int32_t> sums_;
};

}  // namespace polyleaf
