// Scores of candidates in float32, to about six digits but for a common factor: most candidates need no more.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/score.hpp"

namespace polyleaf {

// All bins of one feature, whose candidates are not listed: what `highest_estimate` needs besides.
struct BinsTile {
  ScanTile terms;  // its histogram begins with the feature's first bin; steps and what is given per step is not used
  std::size_t n_bins;
  int count_channel;
  int weight_channel;
  std::int32_t least_rows;  // of a child
  bool shared;              // one Hessian for all outputs: that of the weight channel
  double shared_unit;
  double shared_lambda;
  double least_weight;  // of a child, where all outputs share the Hessian
  float bar;            // an estimate that others have reached; 0: none
};

// Without L1 regularisation, and with moderate terms.
struct EstimateKernels {
  // Returns the highest of the estimates added to; 0 where no candidate is allowed.
  float (*estimate)(const ScanTile& tile);
  // The highest estimate of any candidate of a feature; 0: none is allowed. Candidates that stay below the bar by more
  // than an estimate's error need not be looked at.
  float (*highest_estimate)(const BinsTile& tile);
};

// Of the instruction set in use (kernels/dispatch.hpp).
const EstimateKernels& estimate_kernels();

}  // namespace polyleaf
