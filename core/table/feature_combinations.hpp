// Neighbouring features of few bins, summed as one.
//
// The combinations of the bins of such features are few as well. A row's cells of them are one visited cell then, that
// of its combination of bins, instead of one for each feature: a histogram of combinations is summed first, and from it
// those of the features. The sums are of integers, so either way gives the same.
//
// What it buys: a third of a round with 8 bins a feature, a tenth on mnist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "table/visited_cells.hpp"

namespace polyleaf {

// What a combination of bins costs, in additions of a row: it is cleared, and added to the bins of its features.
constexpr double kCombinationCost = 1.5;

// The features of a tile, combined; some with no other.
struct FeatureCombinations {
  std::vector<std::uint32_t> first;       // the position of each one's first feature; one more than there are
  std::vector<std::uint32_t> slot_begin;  // combinations of bins, the last feature's changing fastest; one more
  VisitedCells cells;                     // as slots of combinations; empty: combining does not pay

  std::size_t size() const { return slot_begin.size() - 1; }
  std::uint32_t n_slots() const { return slot_begin.back(); }
};

// Those of a tile whose codes are known.
FeatureCombinations combine_features(const FeatureTile& tile, std::size_t n_rows, int n_threads);

}  // namespace polyleaf
