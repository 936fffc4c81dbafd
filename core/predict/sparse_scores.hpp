// Scores by sparse leaves, without a number for every output of a row: what 100,000 outputs are predicted with.
//
// The leaves of a row name a few thousand outputs at most. A thread adds them up in an array over all outputs, in the
// order of the trees, so that sums have the bits of the dense way; what was named is written down, and wiped
// afterwards. All other outputs have the score 0: base scores must be 0, and units 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "predict/forest_arrays.hpp"

namespace polyleaf {

// The leaves of some rows in trees [begin, end), as Predictor::apply gives them.
struct LeavesOfRows {
  std::size_t n_rows = 0;
  std::size_t begin = 0, end = 0;
  const std::int32_t* leaves = nullptr;  // rows x (end - begin)
};

// Writes the k outputs with the largest scores of each row, best first; of equal ones the lower first.
void best_outputs(const ForestArrays& forest, const LeavesOfRows& rows, std::size_t n_outputs, std::size_t k,
                  std::int32_t* best, int n_threads);

// The outputs of each row with scores above a threshold, which is not below 0, in compressed rows; ascending.
struct OutputsOfRows {
  std::vector<std::int64_t> row_begin;
  std::vector<std::int32_t> output;
};
OutputsOfRows outputs_above(const ForestArrays& forest, const LeavesOfRows& rows, std::size_t n_outputs,
                            double threshold, int n_threads);

}  // namespace polyleaf
