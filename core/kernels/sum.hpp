// Sums over rows that do not depend on the order of the rows (rules/exact_sum.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "rules/curvature.hpp"

namespace polyleaf {

// Rows of n numbers, `stride` of them apart, and the weights of the rows; null: 1.
struct WeightedRows {
  const float* values;
  std::size_t stride;
  const double* weight;
  int n;
};

// A sum for each number of a row: its grid, and both of its parts, which are added to.
struct RowSums {
  const double* coarse_grid;
  const double* fine_grid;
  double* coarse;
  double* fine;
};

// Rows of weight 0 do not count: they may not be in the sample.
struct SumKernels {
  // Raises `largest`, per number of a row, to the largest weighted magnitude in rows [begin, end).
  void (*largest_magnitudes)(const WeightedRows& rows, std::size_t begin, std::size_t end, double* largest);
  // Adds the weighted magnitudes of rows [begin, end); returns the smallest value, at most 0.
  float (*sum_magnitudes)(const WeightedRows& rows, std::size_t begin, std::size_t end, const RowSums& sums);
  // Adds some rows, weighted, to `sums`, and a term of them to `terms`; one of both may be null.
  void (*sum_rows)(const WeightedRows& rows, const std::uint32_t* some, std::size_t n_some, const RowSums* sums,
                   Term term, const RowSums* terms);
};

// Of the instruction set in use (kernels/dispatch.hpp).
const SumKernels& sum_kernels();

}  // namespace polyleaf
