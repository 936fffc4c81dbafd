// Bounds, in float32, on the sum of the k largest terms of a candidate: most candidates need no selection.
//
// For any threshold, the k largest of some terms t that are not negative sum to at most
//
//   k threshold + sum of max(t - threshold, 0),
//
// and to just that where k terms lie above it. The terms above the threshold, up to k of them, are a bound from below.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/estimate.hpp"
#include "kernels/steps.hpp"

namespace polyleaf {

// Work space for candidates of so many tiles of outputs.
constexpr std::size_t top_bound_room(std::size_t n_tiles) { return 256 * n_tiles; }  // in int32

// The listed candidates of one feature.
struct TopBoundTile {
  const StepSums* sums;     // of each tile of outputs
  const FloatTerms* terms;  // likewise
  std::size_t n_tiles;
  const Step* steps;
  std::size_t n_steps;
  const double* inverse_left;  // as in ScanTile (kernels/score.hpp)
  const double* inverse_right;
  int k;
  bool restricted;   // both sides have the same k outputs
  float error;       // relative, of bounds
  float smallest;    // below, bounds are not to be relied on
  float bar;         // a bound from below of some candidate of the node; raised
  float threshold[2];  // where to begin: of the left and the right side, or of both together; left where it ended
  std::int32_t* room;  // top_bound_room
  float* bound;        // 2 per step: from above
};

struct TopBoundKernels {
  // Returns the highest of the bounds; 0 where no candidate is allowed. Those of candidates that stay below the bar need
  // not be close. Without L1 regularisation, and with moderate terms.
  float (*bound)(TopBoundTile& tile);
};

// Of the instruction set in use (kernels/dispatch.hpp).
const TopBoundKernels& top_bound_kernels();

}  // namespace polyleaf
