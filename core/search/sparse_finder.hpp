// Split finding for sparse leaves (Algorithms 3 and 4 of the paper), whose score is the sum of the k largest terms. It
// is bounded first, in float32 (kernels/top_bound.hpp): only candidates whose bounds reach what another one is known to
// reach are scored in float64, and the best of those is the best of all.
//
// What it buys: most of a round with sparse leaves, which would cost many times a dense one (docs/performance.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/top_bound.hpp"
#include "search/candidates.hpp"
#include "search/estimates.hpp"
#include "search/joint_score.hpp"
#include "search/output_terms.hpp"
#include "search/tile_search.hpp"
#include "search/together.hpp"

namespace polyleaf {

class SparseFinder : public TileSearch {
 public:
  // The estimates must be usable, the score be that of sparse leaves.
  SparseFinder(const OutputTerms& terms, const EstimateTerms& estimates, const JointScore& joint);

  void start(const SearchedNode& node) override;
  void add(const FeatureTile& tile, int output_tile, const std::int32_t* histogram) override;
  FoundSplit best(const FeatureTile& tile, const TileHistograms& histograms) override;
  bool looks_again() const override { return true; }
  double rows_per_bin() const override { return terms_.diagonal() ? kFewRowsPerWideBin : kFewRowsPerBin; }
  FoundSplit search_rows(const FeatureTile& tile, const NodeRows& rows) override;
  bool asks_for_sides() const override { return terms_.diagonal() && terms_.layout().n_tiles > 1; }

 private:
  void begin_thresholds();
  void clear(const FeatureTile& tile);
  void clear_bounds(std::size_t position);
  // A candidate that is not allowed has the bound 0.
  bool is_allowed(std::size_t at) const {
    const Step& step = candidates_.step(at / 2);
    return at % 2 == 0 ? step.right_allowed : step.left_allowed;
  }
  // Makes the bounds of a feature's candidates close at once.
  void settle_alone(const FeatureTile& tile, std::size_t position, const TileHistograms& histograms);
  void add_excess(const FloatTerms& terms, std::size_t position, const StepSums& sums);
  // Of a candidate, or of those from `first` to `last` together: what the thresholds themselves promise.
  float base(std::size_t first, std::size_t last) const;
  void finish_bounds(std::size_t position);
  // Makes bounds close, those of the most promising feature first; of about how many candidates.
  std::size_t settle_promising(const FeatureTile& tile, const TileHistograms& histograms);
  float least() const;
  // The sums of a feature's steps in all tiles of outputs.
  void find_sums(const FeatureTile& tile, std::size_t position, const TileHistograms& histograms);
  // Makes the bounds of those of a feature's candidates close that may be the best; about how many.
  std::size_t settle(const FeatureTile& tile, std::size_t position, const TileHistograms& histograms);
  // Scores those of a feature's candidates that may be the best.
  void score_open(const FeatureTile& tile, std::size_t position, BestCandidate& best);
  void add_step(const Step& step, std::uint32_t first_row);
  void add_missing(std::size_t position);

  const OutputTerms& terms_;
  const EstimateTerms& estimates_;
  const JointScore& joint_;
  SearchedNode node_;
  Candidates candidates_;
  TopBoundTile job_{};
  float threshold_[2] = {0.0f, 0.0f};  // of the tile of features at hand
  float excess_of_others_ = 0.0f;      // of one-sided outputs, where bounds are made of the others
  bool by_share_ = false;              // thresholds are shares of these, as a candidate's sides are of the node
  bool together_ = false;              // steps of the tile at hand are bounded together
  bool alone_ = false;                 // and outputs are all in one tile: nothing is gained by bounds before close ones
  Together trial_;                     // whether those of the next tile are
  float kth_ = 0.0f;                   // the k-th largest term of the node itself
  float ratio_[2] = {1.0f, 1.0f};      // of the best candidate's thresholds to it
  std::vector<float> highest_;         // per feature: of the bounds of its allowed candidates
  std::vector<float> bound_;           // 2 per step: missing right, missing left
  std::vector<StepSums> sums_;         // per tile of outputs
  std::vector<FloatTerms> float_terms_;
  std::vector<std::int32_t> room_, left_, missing_, with_missing_;
  JointScore::Scratch scratch_;
};

}  // namespace polyleaf
