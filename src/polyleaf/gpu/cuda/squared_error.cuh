// Gradients of the squared error.
#pragma once

#include "common.cuh"

// (score - y) / unit; the Hessian is 1 and never asked for. A thread a cell.
extern "C" __global__ void squared_error(const double* raw, const double* y, uint64 n_rows, int n_outputs,
                                         float* gradient, float*, const double* unit) {
  const uint64 i = blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x;
  if (i >= n_rows * n_outputs) return;
  const double inverse = 1.0 / unit[i % n_outputs];
  gradient[i] = polyleaf::to_float(raw[i] * inverse - y[i] * inverse);
}
