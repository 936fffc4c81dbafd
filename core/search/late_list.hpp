// Estimates before candidates are listed: the highest estimate of a feature is found from its bins alone, and only
// features that come close to the best have their candidates listed. For trees whose outputs are all in one tile.
//
// What it buys: a fifth of a round where outputs are few and bins are many (synth_d10, one output).
#pragma once

#include "search/estimates.hpp"

namespace polyleaf {

class LateListingFinder : public EstimatingFinder {
 public:
  using EstimatingFinder::EstimatingFinder;

  void add(const FeatureTile& tile, int output_tile, const std::int32_t* histogram) override;
  FoundSplit best(const FeatureTile& tile, const TileHistograms& histograms) override;
  double rows_per_bin() const override;

 private:
  BinsTile prepare_bins() const;
};

}  // namespace polyleaf
