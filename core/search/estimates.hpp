// Scores that are estimated first, in float32: only candidates whose estimates come close to the highest are scored in
// float64, and the best of those is the best of all.
//
// What it buys: a quarter to nearly half of a round with ten outputs and more (docs/performance.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/estimate.hpp"
#include "search/candidates.hpp"
#include "search/output_terms.hpp"
#include "search/split_finder.hpp"
#include "search/tile_search.hpp"
#include "search/together.hpp"

namespace polyleaf {

// Below, float32 may have lost small terms.
constexpr float kSmallestEstimate = 1e-25f;

// OutputTerms in float32, 32 outputs to a tile, factors relative to the largest.
class EstimateTerms {
 public:
  explicit EstimateTerms(const OutputTerms& terms);

  // Whether estimates of this tree's candidates can be relied on.
  bool usable() const { return !factor_.empty(); }
  // Of an estimate, relative to it.
  float error() const;
  // What an estimate of 1 stands for.
  double scale() const { return scale_; }
  FloatTerms tile(const SearchedNode& node, int output_tile) const;

 private:
  const OutputTerms& terms_;
  double scale_ = 1.0;  // the largest factor
  std::vector<float> factor_, hessian_unit_, lambda_;
};

class EstimatingFinder : public TileSearch {
 public:
  // The estimates must be usable.
  EstimatingFinder(const OutputTerms& terms, const EstimateTerms& estimates)
      : terms_(terms), estimates_(estimates), candidates_(terms, true), scores_(terms) {}

  void start(const SearchedNode& node) override;
  void add(const FeatureTile& tile, int output_tile, const std::int32_t* histogram) override;
  FoundSplit best(const FeatureTile& tile, const TileHistograms& histograms) override;
  bool looks_again() const override { return true; }
  double rows_per_bin() const override { return terms_.diagonal() ? kFewRowsPerWideBin : kFewRowsPerBin; }
  FoundSplit search_rows(const FeatureTile& tile, const NodeRows& rows) override;
  bool asks_for_sides() const override { return terms_.diagonal() && terms_.layout().n_tiles > 1; }

 protected:
  void clear(const FeatureTile& tile);
  void clear_estimates(std::size_t position);
  EstimateTile prepare(int output_tile) const;
  float estimate(EstimateTile& job, std::size_t position, const StepSums& sums);
  // To the highest estimate of the tile, which is returned.
  float raise_bar();
  // Estimates below this cannot be the best.
  float least_estimate() const;
  // Scores the candidates whose estimates leave open whether they are the best.
  FoundSplit score_close(const FeatureTile& tile, float least, const TileHistograms& histograms);

  const OutputTerms& terms_;
  const EstimateTerms& estimates_;
  SearchedNode node_;
  Candidates candidates_;
  float bar_ = 0.0f;            // the highest estimate of the node's candidates in other tiles, as far as known
  std::vector<float> highest_;  // per feature: of the estimates of its allowed candidates

 private:
  // The best of a tile whose estimates, or bounds, are there.
  FoundSplit finish(const FeatureTile& tile, const TileHistograms& histograms);
  // Of some features, by all outputs.
  void estimate_all(const FeatureTile& tile, std::size_t first, std::size_t last, const TileHistograms& histograms);
  // Of several steps in a row, a bound instead of estimates.
  void bound(const FloatTerms& terms, std::size_t position, const StepSums& sums);
  void finish_bounds(const FeatureTile& tile);
  // What two-sided outputs alone have.
  void estimate_two_sided(const FeatureTile& tile, const TwoSidedOutputs& two_sided);
  // Of the candidates that may be the best by what they promise, and other outputs add to that at most; of how many
  // steps.
  std::size_t estimate_promising(const FeatureTile& tile, float of_others, const TileHistograms& histograms);

  std::vector<float> estimated_;    // 2 per step: missing right, missing left; or what they promise
  std::vector<float> promised_;     // per feature: the most
  std::vector<std::size_t> close_;  // features, of those being scored
  bool together_ = false;           // steps of the tile at hand are bounded together first
  Together trial_;                  // whether those of the next tile are
  ExactScores scores_;
};

}  // namespace polyleaf
