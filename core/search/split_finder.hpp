// Split finding on histograms (Algorithm 2 of the paper): every candidate of a tile's numeric features is scored in
// float64.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/score.hpp"
#include "search/candidates.hpp"
#include "search/output_terms.hpp"
#include "search/tile_search.hpp"

namespace polyleaf {

// Scores of listed candidates, summed over the outputs tile by tile.
class ExactScores {
 public:
  explicit ExactScores(const OutputTerms& terms) : terms_(terms) {}

  // Makes the scores of a feature's candidates 0.
  void clear(const Candidates& candidates, std::size_t position);
  // What the features of a tile have in common; `add` does the rest and sums.
  ScanTile prepare(const SearchedNode& node, int output_tile) const;
  void add(ScanTile& job, const Candidates& candidates, std::size_t position, const StepSums& sums);
  // Offers the candidates of a feature, all of whose outputs have been added.
  void offer(const Candidates& candidates, const SearchedNode& node, const FeatureTile& tile, std::size_t position,
             BestCandidate& best) const;

 private:
  const OutputTerms& terms_;
  std::vector<double> score_, left_weight_;  // 2 per step: missing right, missing left
};

class SplitFinder : public TileSearch {
 public:
  explicit SplitFinder(const OutputTerms& terms) : terms_(terms), candidates_(terms, true), scores_(terms) {}

  void start(const SearchedNode& node) override { node_ = node; }
  void add(const FeatureTile& tile, int output_tile, const std::int32_t* histogram) override;
  FoundSplit best(const FeatureTile& tile, const TileHistograms& histograms) override;
  double rows_per_bin() const override { return kFewRowsPerBin; }
  FoundSplit search_rows(const FeatureTile& tile, const NodeRows& rows) override;

 private:
  const OutputTerms& terms_;
  SearchedNode node_;
  Candidates candidates_;
  ExactScores scores_;
};

}  // namespace polyleaf
