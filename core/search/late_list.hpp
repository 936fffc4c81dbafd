// Estimates before candidates are listed: the highest estimate of a feature is found from its bins alone, and only
// features that come close to the best have their candidates listed. For trees whose outputs are all in one tile.
//
// What it buys: a fifth of a round where outputs are few and bins are many (synth_d10, one output).
#pragma once

#include <vector>

#include "search/estimates.hpp"
#include "search/side_bounds.hpp"

namespace polyleaf {

class LateListingFinder : public EstimatingFinder {
 public:
  using EstimatingFinder::EstimatingFinder;

  void add(const FeatureTile& tile, int output_tile, const std::int32_t* histogram) override;
  FoundSplit best(const FeatureTile& tile, const TileHistograms& histograms) override;
  double rows_per_bin() const override;
  bool remembers_sides() const override { return true; }

 private:
  BinsTile prepare_bins() const;
  // The highest estimate of a feature.
  float look_at(const FeatureTile& tile, std::size_t position, const std::int32_t* histogram, float bar,
                BinsTile& job) const;
  // Only features that can reach the bar are looked at, of those whose sides are known.
  void add_by_sides(const FeatureTile& tile, const std::int32_t* histogram);

  std::vector<float> promised_by_side_;   // per feature: what its estimates are below
  std::vector<float> promised_together_;  // the highest of each kSidesTogether of them
};

}  // namespace polyleaf
