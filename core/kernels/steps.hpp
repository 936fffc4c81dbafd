// The candidates of one feature, and where the sums of its bins stand.
#pragma once

#include <cstdint>

namespace polyleaf {

// A bin that holds rows of the node: the last one to the left. Steps stand in ascending order of bins.
struct Step {
  std::uint32_t slot;
  std::uint32_t rows_end;  // without histogram: where its rows end in the feature's order of rows
  bool right_allowed;      // "code <= bin" to the left, missing values to the right
  bool left_allowed;       // the same with missing values to the left
};

// The sums of one tile of outputs: bins of a histogram or, where a node has few rows, the rows themselves.
struct StepSums {
  int width;                      // channels
  const std::int32_t* histogram;  // slots of the feature tile; null: sums are taken from the rows
  const std::int32_t* missing;    // the missing bin's vector of the histogram; null: the feature has none
  const std::int32_t* payload;    // vectors of the node's rows
  const std::uint32_t* order;     // their places by ascending bin, those with missing values last
  std::uint32_t n_rows;
  std::uint32_t n_missing;
};

}  // namespace polyleaf
