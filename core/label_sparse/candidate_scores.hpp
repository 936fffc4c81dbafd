// The score of a candidate of a node with sparse gradients: the sum of the k largest terms.
//
// It is bounded first, in float32, by a threshold (kernels/label_bound.hpp): outputs that cannot lie above it, whatever
// gradients are on which side, are not looked at. They stand last in the node, so that most candidates are told from
// the best so far by a few outputs. The others are scored in float64, from those outputs that may be among the k
// largest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "growth/contract.hpp"
#include "kernels/label_bound.hpp"
#include "label_sparse/gradients.hpp"
#include "label_sparse/node_labels.hpp"
#include "rules/scoring.hpp"

namespace polyleaf {

// Sums of some outputs, and what the rules make of them. Reads of whole lanes run past the end, where a factor of 0
// makes them nothing.
struct LabelTerms {
  std::vector<std::int32_t> output, side, totals;
  std::vector<double> factor, alpha, of_side, of_rest, other;

  void clear();
  void add(std::int32_t of_output, std::int32_t of_sum, std::int32_t total);
  // Their score terms, of the sums and of the rest; inverse: 1 / (H + lambda).
  void compute(const LabelGradients& gradients, double inverse_side, double inverse_rest);
  std::size_t size() const { return output.size(); }
};

class CandidateScores {
 public:
  CandidateScores(const LabelGradients& gradients, const Rules& rules, const SparseLeaves& sparse)
      : gradients_(gradients), rules_(rules), sparse_(sparse) {}

  // Begins with a node, which must outlive its candidates.
  void start(const NodeLabels& node);
  // Of a candidate with these sums, in the node's numbers, on one of its sides; below 0 where it is less than `enough`.
  double score(const std::int32_t* side, std::int64_t side_weight, double enough);
  // 1 / (H + lambda) of rows with this weight.
  double inverse(std::int64_t weight) const;

 private:
  // Outputs from here on have no terms above the thresholds.
  std::size_t looked_at(const float (&threshold)[2]) const;
  // Whether the bound on the score stays below.
  bool is_less(double enough);
  void settle(float share_of_threshold);
  double exact(double inverse_side, double inverse_rest);
  double top_of(std::size_t which);

  const LabelGradients& gradients_;
  const Rules& rules_;
  const SparseLeaves sparse_;
  const NodeLabels* node_ = nullptr;
  double whole_ = 0.0;   // 1 / (H + lambda) of the node
  double scale_ = 0.0;   // what a bound of 1 stands for; 0: bounds are of no use
  float error_ = 0.0f;   // of a bound, relative to it
  LabelSums sums_{};     // of the candidate
  LabelBound bound_{};   // the same
  float kept_[2] = {0};  // thresholds that suited the candidate before
  std::vector<float> room_[2];
  std::vector<std::uint32_t> close_;
  LabelTerms terms_;
};

}  // namespace polyleaf
