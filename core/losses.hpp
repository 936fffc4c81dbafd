// Gradients and Hessians of the built-in losses, one pass over rows x outputs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels.hpp"

namespace polyleaf {

// Gradient of 1/2 (raw - y)^2 in multiples of each output's unit; the Hessian is 1.
void squared_error_gradients(const double* raw, const double* y, const double* unit, std::size_t n_rows, int n_outputs,
                             float* gradient, int n_threads);

// A Hessian of null is not wanted.
void softmax_gradients(const double* raw, const std::int32_t* label, Term curvature, std::size_t n_rows, int n_outputs,
                       float* gradient, float* hessian, int n_threads);

void logistic_gradients(const double* raw, const double* y, std::size_t n_rows, int n_outputs, float* gradient,
                        float* hessian, int n_threads);

// Gradient of max(1 - raw, 0)^2 / 2 where y is 1, max(raw, 0)^2 / 2 where it is 0.
void clipped_squared_error_gradients(const double* raw, const double* y, std::size_t n_rows, int n_outputs,
                                     float* gradient, int n_threads);

}  // namespace polyleaf
