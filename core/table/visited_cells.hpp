// The cells that histograms visit: in a sparse tile, those outside of each feature's most frequent bin.
//
// Where neighbouring features have few bins, the combinations of their bins are few as well. A row's cells of such a
// group are one visited cell then, a combination, instead of one for each feature: a histogram of combinations is
// summed first, and from it those of the features. The sums are of integers, so either way gives the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/buffer.hpp"

namespace polyleaf {

struct BinnedMatrix;

// What a combination costs, in additions of a row: it is cleared, and added to the bins of its features.
constexpr double kCombinationCost = 1.5;

// Entries of a tile are counted in 32 bits.
constexpr std::size_t kMostVisited = (std::size_t{1} << 32) - 1;

struct VisitedCells {
  std::vector<std::uint32_t> row_begin;  // rows + 1
  Buffer<std::uint16_t> slots;

  bool empty() const { return row_begin.empty(); }
  // Cache lines that the cells of most rows take; of very many, those that are worth fetching ahead.
  std::size_t lines() const;
};

struct FeatureGroups {
  std::vector<std::uint32_t> first;       // the position of a group's first feature; one more than groups
  std::vector<std::uint32_t> slot_begin;  // combinations, the last feature's bin changing fastest; one more than groups
  VisitedCells cells;                     // empty: there are no groups

  std::size_t size() const { return slot_begin.size() - 1; }
  std::uint32_t n_slots() const { return slot_begin.back(); }
};

// Of all tiles, whose codes are known.
void list_visited_cells(BinnedMatrix& matrix, int n_threads);

}  // namespace polyleaf
