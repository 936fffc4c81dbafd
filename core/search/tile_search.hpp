// The best split of a node in one tile of features. Every way to find it stands behind this seam.
#pragma once

#include <cstddef>
#include <cstdint>

#include "growth/category_partition.hpp"
#include "growth/value_bounds.hpp"
#include "quantize/payload.hpp"
#include "rules/scoring.hpp"
#include "search/side_bounds.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

class TwoSidedOutputs;

// What a search needs to know of a node, besides its histogram.
struct SearchedNode {
  const std::int32_t* totals = nullptr;
  const std::uint8_t* feature_mask = nullptr;  // 1 where a feature may be used; null: all
  const ValueBounds* bounds = nullptr;
  const TwoSidedOutputs* two_sided = nullptr;  // of its rows, where that is known
  SideArrays sides = {};                       // where they are remembered

  bool allows(std::int32_t feature) const { return feature_mask == nullptr || feature_mask[feature] != 0; }
};

// The histograms of one tile of features, one for each tile of outputs.
struct TileHistograms {
  const std::int32_t* first = nullptr;
  std::size_t stride = 0;  // from one to the next

  const std::int32_t* of(int output_tile) const { return first + static_cast<std::size_t>(output_tile) * stride; }
};

struct FoundSplit {
  BestCandidate best;
  CategoryPartition partition;  // of a split by categories
};

// One thread searches one node at a time: first `start`, then tile after tile of features, in any order, `add` for each
// tile of outputs in theirs, and `best`.
class TileSearch {
 public:
  virtual ~TileSearch() = default;

  virtual void start(const SearchedNode& node) = 0;
  // Takes the histogram of one tile of outputs.
  virtual void add(const FeatureTile& tile, int output_tile, const std::int32_t* histogram) = 0;
  // `histograms` are those that were added, where `looks_again`.
  virtual FoundSplit best(const FeatureTile& tile, const TileHistograms& histograms) = 0;
  virtual bool looks_again() const { return false; }

  // The best split straight from the rows of a node that has few of them, instead of `add` and `best`: no more than
  // this many for each bin of a feature. 0: no node is.
  virtual double rows_per_bin() const { return 0.0; }
  virtual FoundSplit search_rows(const FeatureTile&, const NodeRows&) { return {}; }
  // Whether that is faster where a node's two-sided outputs are known.
  virtual bool asks_for_sides() const { return false; }
  // Whether it bounds what features of listed cells can score by what they scored before.
  virtual bool remembers_sides() const { return false; }
};

}  // namespace polyleaf
