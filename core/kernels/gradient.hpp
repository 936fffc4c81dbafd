// Gradients and predictions of the losses that have kernels, and sketches of gradients.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rules/curvature.hpp"

namespace polyleaf {

struct GradientKernels {
  // out (rows x columns) = values (rows x n) times matrix, which stands column by column, `matrix_stride` floats apart
  // and padded with zeros to multiples of 16.
  void (*project)(const float* values, std::size_t stride, std::size_t begin, std::size_t end, int n,
                  const float* matrix, std::size_t matrix_stride, int n_columns, float* out);
  // out (per row) = weighted sum of a term of n values.
  void (*weighted_sums)(const float* values, std::size_t stride, std::size_t begin, std::size_t end, int n,
                        const double* weight, Term term, double* out);
  // `hessian` (here and below) may be null; `curvature` is one of the Hessians.
  void (*softmax)(const double* raw, const std::int32_t* label, Term curvature, std::size_t begin, std::size_t end,
                  int n_outputs, float* gradient, float* hessian);
  void (*logistic)(const double* raw, const double* label, std::size_t begin, std::size_t end, float* gradient,
                   float* hessian);
  // What these losses predict.
  void (*softmax_shares)(const double* raw, std::size_t begin, std::size_t end, int n_outputs, double* out);
  void (*sigmoids)(const double* raw, std::size_t begin, std::size_t end, double* out);
};

// Of the instruction set in use (kernels/dispatch.hpp).
const GradientKernels& gradient_kernels();

}  // namespace polyleaf
