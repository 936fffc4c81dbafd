// Gradients and predictions of the losses that have kernels, and sketches of gradients.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rules/curvature.hpp"

namespace polyleaf {

// Scores of rows [begin, end), and where their gradients go. The scores are those of all rows x outputs; the arrays of
// gradients begin with row `first`.
struct ScoreBlock {
  const double* scores = nullptr;
  int n_outputs = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  float* gradient = nullptr;
  float* hessian = nullptr;  // null: not wanted
  std::size_t first = 0;

  // Where a row stands in the arrays of gradients.
  std::size_t place(std::size_t row) const { return (row - first) * static_cast<std::size_t>(n_outputs); }
};

// Rows [begin, end) of a matrix whose rows of n numbers are `stride` numbers apart, and which begins with row `first`.
struct FloatRows {
  const float* values = nullptr;
  std::size_t stride = 0;
  int n = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t first = 0;

  const float* row(std::size_t number) const { return values + (number - first) * stride; }
};

// What rows are multiplied by: column by column, `stride` floats apart and padded with zeros to multiples of 16.
struct Columns {
  const float* data = nullptr;
  std::size_t stride = 0;
  int count = 0;
};

struct GradientKernels {
  // out (all rows x columns) = rows times columns.
  void (*project)(const FloatRows& rows, const Columns& columns, float* out);
  // out (per row) = weighted sum of a term of the row's numbers.
  void (*weighted_sums)(const FloatRows& rows, const double* weight, Term term, double* out);
  // `curvature` is one of the Hessians.
  void (*softmax)(const ScoreBlock& block, const std::int32_t* label, Term curvature);
  void (*logistic)(const ScoreBlock& block, const double* label);
  // What these losses predict.
  void (*softmax_shares)(const double* raw, std::size_t begin, std::size_t end, int n_outputs, double* out);
  void (*sigmoids)(const double* raw, std::size_t begin, std::size_t end, double* out);
};

// Of the instruction set in use (kernels/dispatch.hpp).
const GradientKernels& gradient_kernels();

}  // namespace polyleaf
