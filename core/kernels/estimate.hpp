// Scores of candidates in float32, to about six digits but for a common factor: most candidates need no more.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/steps.hpp"

namespace polyleaf {

// What the rules need of the outputs of a tile, padded to 32 outputs, and the node's sums of it.
struct FloatTerms {
  const float* factor;        // relative to the largest of all outputs, padded with 0
  const float* hessian_unit;  // padded with 0
  const float* lambda;        // padded with 1
  int n_outputs;
  int hessian_channel;
  const std::int32_t* totals;
};

// The listed candidates of one feature.
struct EstimateTile {
  StepSums sums;
  const Step* steps;
  std::size_t n_steps;
  FloatTerms terms;
  const double* inverse_left;  // as in ScanTile (kernels/score.hpp)
  const double* inverse_right;
  float* estimated;  // 2 per step, added to
};

// All bins of one feature, whose candidates are not listed.
struct BinsTile {
  const std::int32_t* bins;
  std::size_t n_bins;
  const std::int32_t* missing;  // the missing bin's; null: the feature has none
  int width;                    // channels
  FloatTerms terms;
  int count_channel;
  int weight_channel;
  std::int32_t least_rows;  // of a child
  bool shared;              // one Hessian for all outputs: that of the weight channel
  double shared_unit;
  double shared_lambda;
  double least_weight;  // of a child, where all outputs share the Hessian
  float bar;            // an estimate that others have reached; 0: none
};

// Bounds on what the candidates of some features score, from the sides that they had in a node above
// (search/side_bounds.hpp).
struct SidesTile {
  const float* score;
  const float* gradient;
  const float* weight;
  std::size_t n;   // features
  float own;       // what the gradients of the node add to those of a side
  float lightest;  // what a side's weight leaves of it
  float factor;
  float* highest;              // per feature
  float* highest_of_together;  // of each kSidesTogether of them
};

constexpr std::size_t kSidesTogether = 64;
constexpr float kNoWeight = 1e-30f;  // what divides where nothing is left

// Gradients and Hessians of an output tile in some rows, and what is to be known of each output.
struct OutputRanges {
  const std::int32_t* payload;
  int width;
  int hessian_channel;
  int n_outputs;
  const std::uint32_t* places;  // of the rows among the vectors
  std::size_t n_rows;
  // To be widened, and to be lowered: Hessian / |gradient|, where a gradient of 0 is taken as 1. Null: not asked for.
  std::int32_t* lowest;
  std::int32_t* highest;
  float* ratio;
};

// Without L1 regularisation, and with moderate terms.
struct EstimateKernels {
  // Returns the highest of the estimates added to; 0 where no candidate is allowed.
  float (*estimate)(const EstimateTile& tile);
  // The highest estimate of any candidate of a feature; 0: none is allowed. Candidates that stay below the bar by more
  // than an estimate's error need not be looked at.
  float (*highest_estimate)(const BinsTile& tile);
  void (*bound_sides)(const SidesTile& sides);
  void (*widen)(const OutputRanges& ranges);
  // Up to so many outputs, `highest_estimate` takes several bins at once.
  int few_outputs;
};

// Of the instruction set in use (kernels/dispatch.hpp).
const EstimateKernels& estimate_kernels();

}  // namespace polyleaf
