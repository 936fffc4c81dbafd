// The candidates of one node in one tile of numeric features.
//
// Each bin that holds rows of the node is a step: it is the last one to the left, with missing values on either side.
//
//   steps:       | feature 0: bin 0, bin 3, bin 7 | feature 1: none | feature 2: bin 1, ...
//   step_begin:  0                                3                 3
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/steps.hpp"
#include "search/output_terms.hpp"
#include "search/row_order.hpp"
#include "search/tile_search.hpp"

namespace polyleaf {

class Candidates {
 public:
  // `weighed`: a candidate's sides are looked at when it is listed, where all outputs share one Hessian. `with_shares`:
  // the shares of the sides are wanted.
  Candidates(const OutputTerms& terms, bool weighed, bool with_shares = false)
      : terms_(terms), weighed_(weighed && !terms.diagonal()), with_shares_(with_shares) {}

  // Begins the list of a node in a tile.
  void clear(const SearchedNode& node, const FeatureTile& tile);
  // Lists the candidates of the next feature by its bins in the histogram of the first output tile, or none.
  void list_bins(const FeatureTile& tile, const std::int32_t* histogram);
  void list_none() { step_begin_.push_back(n_steps_); }
  // Lists those of all features by the rows of the node, which are kept.
  void list_rows(const FeatureTile& tile, const NodeRows& rows);

  std::size_t n_steps() const { return n_steps_; }
  std::size_t begin(std::size_t position) const { return step_begin_[position]; }
  std::size_t end(std::size_t position) const { return step_begin_[position + 1]; }
  bool has_none(std::size_t position) const { return begin(position) == end(position); }
  Step& step(std::size_t at) { return steps_[at]; }
  const Step& step(std::size_t at) const { return steps_[at]; }
  bool missing_seen(std::size_t position) const { return missing_seen_[position] != 0; }
  // The last bin to the left.
  int bin(const FeatureTile& tile, std::size_t position, std::size_t step) const {
    return static_cast<int>(steps_[step].slot - tile.slot_begin[position]);
  }

  // Where the sums of a feature's steps stand: in the histogram or, where that is null, with the rows.
  StepSums sums(const FeatureTile& tile, std::size_t position, int output_tile, const std::int32_t* histogram) const;
  // 1 / (H + lambda) of the sides of each candidate, missing values to the right and to the left, where they are
  // weighed; else null.
  const double* inverse_left(std::size_t step) const { return weighed_ ? inverse_left_.data() + 2 * step : nullptr; }
  const double* inverse_right(std::size_t step) const { return weighed_ ? inverse_right_.data() + 2 * step : nullptr; }
  // What part of the node's weight is on the left side of each candidate, off 0 and 1.
  const float* left_share(std::size_t step) const { return left_share_.data() + 2 * step; }

 private:
  struct Counts {  // of the count and the weight channel
    std::int64_t count = 0;
    std::int64_t weight = 0;
  };

  // Whether some of the bins so far, or of those that follow, may be the last to the left.
  bool goes_on(const Counts& left) const { return n_ - left.count >= terms_.rules.min_samples_leaf; }
  void make_room(std::size_t n_steps);
  void list_groups(std::uint32_t first_slot, std::int64_t n_missing);
  void list_weighed_groups(std::uint32_t first_slot, const Counts& missing);
  void add(std::uint32_t slot, std::uint32_t rows_end, const Counts& left, const Counts& missing);
  bool weigh(std::size_t at, double left_weight);
  float share(std::int64_t left_weight) const;

  const OutputTerms& terms_;
  const bool weighed_;
  const bool with_shares_;
  SearchedNode node_;
  std::int64_t n_ = 0;     // rows of the node
  double total_ = 0.0;     // their weight
  float of_whole_ = 0.0f;  // 1 / their weight, in units of the weight channel
  std::size_t n_steps_ = 0;
  std::vector<Step> steps_;  // of these the first n_steps; so with the numbers per step
  std::vector<double> inverse_left_, inverse_right_;
  std::vector<float> left_share_;
  std::vector<std::size_t> step_begin_;
  std::vector<std::uint8_t> missing_seen_;  // per feature: the node has missing values of it
  RowOrder rows_;
};

// The missing bin's vector of a feature; null: the feature has none.
const std::int32_t* missing_bin(const FeatureTile& tile, std::size_t position, const std::int32_t* histogram,
                                int width);

}  // namespace polyleaf
