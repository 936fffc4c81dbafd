// Split finding where a score needs all outputs of a candidate at once (joint_score.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "search/candidates.hpp"
#include "search/joint_score.hpp"
#include "search/output_terms.hpp"
#include "search/tile_search.hpp"

namespace polyleaf {

// The feature by whose values the sides of a split are ordered; -1 where the right one has missing values only.
int ordering_feature(const BinnedMatrix& matrix, int feature, int bin);

class JointFinder : public TileSearch {
 public:
  JointFinder(const BinnedMatrix& matrix, const OutputTerms& terms, const JointScore& joint)
      : matrix_(matrix), terms_(terms), joint_(joint), candidates_(terms, false) {}

  void start(const SearchedNode& node) override { node_ = node; }
  void add(const FeatureTile& tile, int output_tile, const std::int32_t* histogram) override;
  FoundSplit best(const FeatureTile& tile, const TileHistograms& histograms) override;

 private:
  const std::int32_t* left_of(std::size_t position, std::size_t step, bool missing_left);
  int bin_of(const FeatureTile& tile, std::size_t position, std::size_t step) const;

  const BinnedMatrix& matrix_;
  const OutputTerms& terms_;
  const JointScore& joint_;
  SearchedNode node_;
  Candidates candidates_;
  // Sums to the left of each step, and of each feature's missing bin, flat over the output tiles.
  std::vector<std::int32_t> left_, missing_, with_missing_;
  JointScore::Scratch scratch_;
};

}  // namespace polyleaf
