// The outputs of a node that splits gain from, apart from those that are one-sided: whose gradients all have one sign.
//
// Of a one-sided output both sides of a split together score no more than
//
//   phi(|G|),  phi(x) = x^2 / (r x + lambda),  where H >= r |G| of every row,
//
// since phi is convex and phi(0) = 0. That is hardly more than the node scores by itself, if r is about the same in all
// rows. So candidates are estimated by the two-sided outputs and this bound first. Of many classes or labels few are
// there in a small node, and all others are one-sided.
//
// What it buys: a quarter of a round of caltech101 with a Hessian of each class (docs/performance.md).
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/estimate.hpp"
#include "kernels/steps.hpp"
#include "quantize/payload.hpp"

namespace polyleaf {

class EstimateTerms;
struct OutputTerms;

class TwoSidedOutputs {
 public:
  // How many there are in some rows; no further than to one more than `most`.
  int count(const PayloadLayout& layout, const NodeRows& rows, int most) {
    return look_through(layout, rows, most, false);
  }
  // Looks through the rows of a node, which are copies, and have these sums.
  void take(const OutputTerms& terms, const EstimateTerms& estimates, const NodeRows& rows, const std::int32_t* totals);

  int n_outputs() const { return static_cast<int>(outputs_.size()); }
  // Tiles of two-sided outputs alone, and where the sums of a feature's steps stand, if these are those of the rows.
  int n_tiles() const { return (n_outputs() + kPerTile - 1) / kPerTile; }
  FloatTerms tile(int t) const;
  StepSums sums(const StepSums& of_rows, int t) const;
  // What one-sided outputs can add to an estimate.
  float bound_of_others() const { return excess_of_others(0.0f); }
  // What of it lies above a threshold, output by output.
  float excess_of_others(float threshold) const;

 private:
  static constexpr int kPerTile = PayloadLayout::kMaxWidth / 2;
  static constexpr std::size_t kWidth = PayloadLayout::kMaxWidth;

  int look_through(const PayloadLayout& layout, const NodeRows& rows, int most, bool ratios);
  bool is_two_sided(std::size_t output) const { return lowest_[output] < 0 && highest_[output] > 0; }

  std::vector<std::int32_t> lowest_, highest_;  // gradients of each output
  std::vector<float> ratio_;                    // its least Hessian / |gradient|
  std::vector<int> outputs_;
  std::vector<float> bounds_;  // of one-sided outputs
  std::size_t n_rows_ = 0;
  Buffer<std::int32_t> data_;  // [tile][row][gradients | Hessians]
  std::vector<std::int32_t> totals_;
  std::vector<float> factor_, hessian_unit_, lambda_;
};

}  // namespace polyleaf
