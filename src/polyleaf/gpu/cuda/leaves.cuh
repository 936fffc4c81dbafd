// What leaves say, from the gradients as they are, and what it adds to the scores.
#pragma once

#include "common.cuh"
#include "rules/curvature.hpp"
#include "rules/exact_sum.hpp"
#include "rules/routing.hpp"

namespace polyleaf {

// Grids of the sums of leaves: the coarse one of each output, then the fine ones.
__device__ inline SumGrid grid_of(const double* grids, int n_outputs, int output) {
  return {grids[output], grids[n_outputs + output]};
}

}  // namespace polyleaf

// Gradients, Hessians and weight of one piece of a leaf's rows: both parts of each sum, [coarse | fine].
extern "C" __global__ void sum_leaves(const polyleaf::Work* works, const uint32* rows, const float* gradient,
                                      uint64 gradient_stride, const float* hessian, uint64 hessian_stride,
                                      const double* weight, int term, int n_outputs, const double* gradient_grids,
                                      const double* hessian_grids, const double* weight_grid, double* sums) {
  using namespace polyleaf;
  const Work work = works[blockIdx.x];
  const auto rule = static_cast<Term>(term);
  const int output = blockIdx.y * blockDim.x + threadIdx.x;
  const uint64 stride = 2ull * n_outputs + 1;
  double* coarse = sums + blockIdx.x * 2 * stride;
  double* fine = coarse + stride;
  if (output == 0) {
    ExactSum sum;
    if (weight == nullptr) sum.coarse = work.end - work.begin;
    for (uint32 i = work.begin; weight != nullptr && i < work.end; ++i)
      sum.add(weight[rows[i]], grid_of(weight_grid, 1, 0));
    coarse[2 * n_outputs] = sum.coarse;
    fine[2 * n_outputs] = sum.fine;
  }
  if (output >= n_outputs) return;
  const bool own = hessian != nullptr || rule != Term::kItself;
  const SumGrid grid = grid_of(gradient_grids, n_outputs, output);
  const SumGrid hessian_grid = own ? grid_of(hessian_grids, n_outputs, output) : grid;
  ExactSum g, h;
#pragma unroll 8
  for (uint32 i = work.begin; i < work.end; ++i) {
    const uint64 row = rows[i];
    const double w = weight != nullptr ? weight[row] : 1.0;
    const double x = to_double(gradient[row * gradient_stride + output]);
    g.add(w * x, grid);
    if (hessian != nullptr)
      h.add(w * to_double(hessian[row * hessian_stride + output]), hessian_grid);
    else if (own)
      h.add(w * term_of(rule, x), hessian_grid);
  }
  coarse[output] = g.coarse;
  fine[output] = g.fine;
  coarse[n_outputs + output] = h.coarse;
  fine[n_outputs + output] = h.fine;
}

// `first_work`: of each leaf, and one more. `own_hessian`: outputs have their own; else the weight is it. `totals`: per
// leaf gradients, Hessians and weight.
extern "C" __global__ void value_leaves(const int* first_work, const double* sums, int n_outputs, int own_hessian,
                                        double reg_lambda, const double* alpha, double learning_rate, float* values,
                                        double* totals) {
  using namespace polyleaf;
  constexpr double kLargest = 3.4028234663852886e38;
  const int leaf = blockIdx.x, output = blockIdx.y * blockDim.x + threadIdx.x;
  if (output >= n_outputs) return;
  const uint64 stride = 2ull * n_outputs + 1;
  ExactSum of_gradient, of_hessian, of_weight;
  for (int w = first_work[leaf]; w < first_work[leaf + 1]; ++w) {
    const double* coarse = sums + w * 2 * stride;
    const double* fine = coarse + stride;
    of_gradient.add({coarse[output], fine[output]});
    of_hessian.add({coarse[n_outputs + output], fine[n_outputs + output]});
    of_weight.add({coarse[2 * n_outputs], fine[2 * n_outputs]});
  }
  const double g = of_gradient.value(), h = of_hessian.value(), weight = of_weight.value();
  const double shrunk = soft_threshold(g, alpha != nullptr ? alpha[output] : 0.0);
  const double value = learning_rate * leaf_value(shrunk, (own_hessian != 0 ? h : weight) + reg_lambda);
  values[static_cast<uint64>(leaf) * n_outputs + output] = to_float(fmin(fmax(value, -kLargest), kLargest));
  double* out = totals + leaf * stride;
  out[output] = g;
  out[n_outputs + output] = h;
  if (output == 0) out[2 * n_outputs] = weight;
}

// Adds the values of leaves to the scores of their rows, a warp a row. Blocks along y share the rows of a piece.
extern "C" __global__ void add_leaves(const polyleaf::Work* works, const uint32* rows, const float* values,
                                      const double* unit, int n_outputs, uint64 raw_stride, double* raw) {
  using namespace polyleaf;
  const Work work = works[blockIdx.x];
  const float* value = values + static_cast<uint64>(work.target) * n_outputs;
  const int lane = threadIdx.x & 31;
  const uint32 n_warps = gridDim.y * (blockDim.x >> 5);
  for (uint32 i = work.begin + blockIdx.y * (blockDim.x >> 5) + (threadIdx.x >> 5); i < work.end; i += n_warps) {
    double* row = raw + rows[i] * raw_stride;
    for (int j = lane; j < n_outputs; j += 32) row[j] += unit[j] * to_double(value[j]);
  }
}

// The leaf of each row of the training table, by its codes.
extern "C" __global__ void route_rows(const int* left, const int* feature, const int* bin, const uint8* missing_left,
                                      const int* leaf, const uint8* codes, const int* value_bins, uint64 n_rows,
                                      int* out) {
  using namespace polyleaf;
  const uint64 row = blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x;
  if (row >= n_rows) return;
  int node = 0;
  while (left[node] >= 0) {
    const int f = feature[node];
    const CodeSplit split = split_by_code(bin[node], missing_left[node] != 0, static_cast<uint32>(value_bins[f]));
    node = left[node] + (goes_left(split, code_of(codes, n_rows, row, f)) ? 0 : 1);
  }
  out[row] = leaf[node];
}
