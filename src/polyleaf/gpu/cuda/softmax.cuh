// Gradients of the softmax cross entropy.
#pragma once

#include "common.cuh"
#include "rules/curvature.hpp"
#include "rules/exponential.hpp"

namespace polyleaf {

__device__ inline double exponential_of_score(double x) {
  return to_double(exponential_of_loss(x, [](double value) { return to_float(value); }));
}

}  // namespace polyleaf

// p - onehot(y); the Hessian by its rule, where it is wanted. A warp a row.
extern "C" __global__ void softmax(const double* raw, const int* label, uint64 n_rows, int n_outputs, float* gradient,
                                   float* hessian, int rule) {
  using namespace polyleaf;
  const uint64 row = (blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x) >> 5;
  if (row >= n_rows) return;
  const int lane = threadIdx.x & 31;
  const double* x = raw + row * n_outputs;
  double largest = x[0];
  for (int j = lane; j < n_outputs; j += 32) largest = fmax(largest, x[j]);
  largest = warp_max(largest);
  double sum = 0;
  for (int j = lane; j < n_outputs; j += 32) sum += exponential_of_score(x[j] - largest);
  const double inverse = 1.0 / warp_sum(sum);
  for (int j = lane; j < n_outputs; j += 32) {
    const double p = exponential_of_score(x[j] - largest) * inverse;
    const double g = j == label[row] ? p - 1.0 : p;
    gradient[row * n_outputs + j] = to_float(g);
    if (hessian != nullptr)
      hessian[row * n_outputs + j] = to_float(curvature(static_cast<Term>(rule), p, j == label[row] ? 1.0 : 0.0));
  }
}
