// Bounds, in float32, on the sum of the k largest terms of a candidate: most candidates need no selection.
//
// For any threshold, the k largest of some terms t that are not negative sum to at most
//
//   k threshold + sum of max(t - threshold, 0),
//
// and to just that where k terms lie above it. The terms above the threshold, up to k of them, are a bound from below.
// What lies above a threshold is a sum over outputs: it is taken tile by tile, like a dense score.
//
// Where each side holds outputs of its own, its threshold is in proportion to its share of the node: of a feature that
// tells nothing apart, the terms of a side are that share of the node's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/estimate.hpp"
#include "kernels/steps.hpp"

namespace polyleaf {

// Steps in a row that may have one bound together.
constexpr std::size_t kStepsTogether = 8;

// The listed candidates of one feature, in one tile of outputs. Where both sides of a split hold the same outputs
// (`restricted`), their terms are added first, and the second threshold is unused.
struct ExcessTile {
  StepSums sums;
  const Step* steps;
  std::size_t n_steps;
  FloatTerms terms;
  const double* inverse_left;  // as in ScanTile (kernels/score.hpp)
  const double* inverse_right;
  bool restricted;
  bool together;            // no less than that of any of kStepsTogether steps, as that of the first
  float threshold[2];       // of the left side and of the right one
  const float* left_share;  // 2 per step: thresholds are such shares of these; null: they are the same for all
  float* excess;            // 2 per step, added to
};

// Work space for candidates of so many tiles of outputs, in int32.
constexpr std::size_t top_bound_room(std::size_t n_tiles) { return (192 + 64 * kStepsTogether) * n_tiles; }

// The listed candidates of one feature, in all tiles of outputs.
struct TopBoundTile {
  const StepSums* sums;     // per tile of outputs
  const FloatTerms* terms;  // likewise
  std::size_t n_tiles;
  const Step* steps;
  std::size_t n_steps;
  const double* inverse_left;
  const double* inverse_right;
  const float* left_share;  // 2 per step
  int k;
  bool restricted;
  float error;              // of bounds, relative to them
  float smallest;           // below, bounds are not to be relied on
  float bar;                // what some candidate of the node is known to reach; raised
  float threshold[2];       // where to begin; left where it ended. Unless restricted, of a side that is the whole node
  float best_threshold[2];  // of the candidate that raised the bar; likewise
  float best_share = 0.5f;  // its left share
  std::int32_t* room;       // top_bound_room
  float* bound;             // 2 per step: from above; lowered
};

// Without L1 regularisation, and with moderate terms.
struct TopBoundKernels {
  void (*excess)(const ExcessTile& tile);
  // Makes the bounds of candidates close which do not stay below the bar.
  void (*settle)(TopBoundTile& tile);
};

// Of the instruction set in use (kernels/dispatch.hpp).
const TopBoundKernels& top_bound_kernels();

}  // namespace polyleaf
