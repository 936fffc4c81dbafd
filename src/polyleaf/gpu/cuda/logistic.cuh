// Gradients of the binary cross entropy.
#pragma once

#include "common.cuh"

// p - y and p(1 - p), the latter where it is wanted. A thread a cell.
extern "C" __global__ void logistic(const double* raw, const double* label, uint64 n_rows, int n_outputs,
                                    float* gradient, float* hessian) {
  const uint64 i = blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x;
  if (i >= n_rows * n_outputs) return;
  const double p = 1.0 / (1.0 + exp(fmin(fmax(-raw[i], -700.0), 700.0)));
  gradient[i] = polyleaf::to_float(p - label[i]);
  if (hessian != nullptr) hessian[i] = polyleaf::to_float(p * (1.0 - p));
}
