// What leaves say, from the gradients as they are, and what it adds to the scores.
#pragma once

#include "common.cuh"
#include "rules/curvature.hpp"
#include "rules/exact_sum.hpp"
#include "rules/influence.hpp"
#include "rules/routing.hpp"

namespace polyleaf {

// Grids of the sums of leaves: the coarse one of each output, then the fine ones.
__device__ inline SumGrid grid_of(const double* grids, int n_outputs, int output) {
  return {grids[output], grids[n_outputs + output]};
}

constexpr double kNoLimit = 1.7976931348623157e308;  // of what a row may say

// What a leaf says of an output whose gradients and Hessians sum to these.
__device__ inline float stored_leaf(double gradient, double hessian, const LeafRules& rules, int output) {
  constexpr double kLargest = 3.4028234663852886e38;
  const double shrunk = soft_threshold(gradient, rules.alpha != nullptr ? rules.alpha[output] : 0.0);
  const double value = rules.learning_rate * leaf_value(shrunk, hessian + rules.reg_lambda);
  return to_float(fmin(fmax(value, -kLargest), kLargest));
}

}  // namespace polyleaf

// Gradients, Hessians and weight of one chunk of a leaf's rows: both parts of each sum, [coarse | fine]. A block has
// teams of `width` threads, a thread an output, that share the rows: no order changes the sums. Where sums are plain,
// there is one team. Shared memory: 6 numbers a thread. `limits`: leaves x outputs, of the gradients; may be null.
extern "C" __global__ void sum_leaves(const polyleaf::RowChunk* chunks, const uint32* rows, polyleaf::Gradients of,
                                      int term, int width, polyleaf::LeafGrids grids, const double* limits,
                                      double* sums) {
  using namespace polyleaf;
  extern __shared__ double memory[];
  ExactSum(*parts)[3] = reinterpret_cast<ExactSum(*)[3]>(memory);
  const RowChunk chunk = chunks[blockIdx.x];
  const auto rule = static_cast<Term>(term);
  const int n_outputs = of.n_outputs, thread = threadIdx.x, n_teams = blockDim.x / width, team = thread / width;
  const int output = blockIdx.y * width + thread % width;
  const double* weight = of.weight;
  const bool stored = of.hessian.values != nullptr, own = stored || rule != Term::kItself;
  ExactSum g, h, all;
  if (output < n_outputs) {
    const SumGrid grid = grid_of(grids.gradient, n_outputs, output);
    const SumGrid hessian_grid = own ? grid_of(grids.hessian, n_outputs, output) : grid;
    const double limit = limits != nullptr ? limits[static_cast<uint64>(chunk.target) * n_outputs + output] : kNoLimit;
#pragma unroll 8
    for (uint32 i = chunk.begin + team; i < chunk.end; i += n_teams) {
      const uint64 row = rows[i];
      const double w = weight != nullptr ? weight[row] : 1.0;
      const double x = to_double(of.gradient.values[row * of.gradient.stride + output]);
      g.add(w * within_limit(x, limit), grid);
      if (stored)
        h.add(w * to_double(of.hessian.values[row * of.hessian.stride + output]), hessian_grid);
      else if (own)
        h.add(w * term_of(rule, x), hessian_grid);
    }
    if (output == 0 && weight != nullptr)
      for (uint32 i = chunk.begin + team; i < chunk.end; i += n_teams)
        all.add(weight[rows[i]], grid_of(grids.weight, 1, 0));
  }
  if (n_teams > 1) {
    parts[thread][0] = g, parts[thread][1] = h, parts[thread][2] = all;
    __syncthreads();
    for (int other = thread + width; team == 0 && other < static_cast<int>(blockDim.x); other += width) {
      g.add(parts[other][0]);
      h.add(parts[other][1]);
      all.add(parts[other][2]);
    }
  }
  if (team != 0 || output >= n_outputs) return;
  const uint64 stride = 2ull * n_outputs + 1;
  double* coarse = sums + blockIdx.x * 2 * stride;
  double* fine = coarse + stride;
  coarse[output] = g.coarse;
  fine[output] = g.fine;
  coarse[n_outputs + output] = h.coarse;
  fine[n_outputs + output] = h.fine;
  if (output != 0) return;
  coarse[2 * n_outputs] = weight != nullptr ? all.coarse : chunk.end - chunk.begin;
  fine[2 * n_outputs] = all.fine;
}

// `first_chunk`: of each leaf, and one more. `totals`: per leaf gradients, Hessians and weight.
extern "C" __global__ void value_leaves(const int* first_chunk, const double* sums, int n_outputs,
                                        polyleaf::LeafRules rules, float* values, double* totals) {
  using namespace polyleaf;
  const int leaf = blockIdx.x, output = blockIdx.y * blockDim.x + threadIdx.x;
  if (output >= n_outputs) return;
  const uint64 stride = 2ull * n_outputs + 1;
  ExactSum of_gradient, of_hessian, of_weight;
  for (int c = first_chunk[leaf]; c < first_chunk[leaf + 1]; ++c) {
    const double* coarse = sums + c * 2 * stride;
    const double* fine = coarse + stride;
    of_gradient.add({coarse[output], fine[output]});
    of_hessian.add({coarse[n_outputs + output], fine[n_outputs + output]});
    of_weight.add({coarse[2 * n_outputs], fine[2 * n_outputs]});
  }
  const double g = of_gradient.value(), h = of_hessian.value(), weight = of_weight.value();
  values[static_cast<uint64>(leaf) * n_outputs + output] =
      stored_leaf(g, rules.own_hessian != 0 ? h : weight, rules, output);
  double* out = totals + leaf * stride;
  out[output] = g;
  out[n_outputs + output] = h;
  if (output == 0) out[2 * n_outputs] = weight;
}

// The largest magnitude of a gradient in a chunk of a leaf's rows: chunks x outputs. Teams as in sum_leaves; shared
// memory: a number a thread.
extern "C" __global__ void largest_in_leaves(const polyleaf::RowChunk* chunks, const uint32* rows,
                                             polyleaf::Gradients of, int width, double* largest) {
  using namespace polyleaf;
  extern __shared__ double parts[];
  const RowChunk chunk = chunks[blockIdx.x];
  const int thread = threadIdx.x, n_teams = blockDim.x / width, team = thread / width;
  const int output = blockIdx.y * width + thread % width;
  double most = 0;
  if (output < of.n_outputs)
#pragma unroll 8
    for (uint32 i = chunk.begin + team; i < chunk.end; i += n_teams)
      most =
          fmax(most, fabs(to_double(of.gradient.values[static_cast<uint64>(rows[i]) * of.gradient.stride + output])));
  parts[thread] = most;
  __syncthreads();
  if (team != 0 || output >= of.n_outputs) return;
  for (int other = thread + width; other < static_cast<int>(blockDim.x); other += width)
    most = fmax(most, parts[other]);
  largest[static_cast<uint64>(blockIdx.x) * of.n_outputs + output] = most;
}

// What a row may say in each leaf (leaves x outputs), a thread an output; no limit where no row is beyond it. `totals`
// have sums of magnitudes in the place of Hessians; `row`: the least weight of any.
extern "C" __global__ void limit_leaves(const int* first_chunk, int n_leaves, double row, const double* totals,
                                        const double* largest, int n_outputs, double* limits) {
  using namespace polyleaf;
  const int output = blockIdx.x * blockDim.x + threadIdx.x;
  if (output >= n_outputs) return;
  const uint64 stride = 2ull * n_outputs + 1;
  double weight = 0, magnitudes = 0;
  for (int leaf = 0; leaf < n_leaves; ++leaf) {
    weight += totals[leaf * stride + 2 * n_outputs];
    magnitudes += totals[leaf * stride + n_outputs + output];
  }
  const double ordinary = magnitudes / weight;
  for (int leaf = 0; leaf < n_leaves; ++leaf) {
    double most = 0;
    for (int c = first_chunk[leaf]; c < first_chunk[leaf + 1]; ++c)
      most = fmax(most, largest[static_cast<uint64>(c) * n_outputs + output]);
    const double* sum = totals + leaf * stride;
    const double limit = influence_limit(ordinary, row, sum[n_outputs + output], most, sum[2 * n_outputs]);
    limits[static_cast<uint64>(leaf) * n_outputs + output] = most > limit ? limit : kNoLimit;
  }
}

// Values of leaves from gradients within limits, a thread an output: `sums` are of these, `totals` of all there is.
// What is cut off is said to all rows alike.
extern "C" __global__ void value_bounded_leaves(const int* first_chunk, int n_leaves, const double* sums,
                                                const double* totals, const double* limits, int n_outputs,
                                                polyleaf::LeafRules rules, float* values) {
  using namespace polyleaf;
  const int output = blockIdx.x * blockDim.x + threadIdx.x;
  if (output >= n_outputs) return;
  const uint64 stride = 2ull * n_outputs + 1;
  const auto within = [&](int leaf) {
    const double whole = totals[leaf * stride + output];
    if (limits[static_cast<uint64>(leaf) * n_outputs + output] == kNoLimit) return whole;
    ExactSum of_gradient;
    for (int c = first_chunk[leaf]; c < first_chunk[leaf + 1]; ++c)
      of_gradient.add({sums[c * 2 * stride + output], sums[c * 2 * stride + stride + output]});
    return of_gradient.value();
  };
  double weight = 0, cut = 0;
  for (int leaf = 0; leaf < n_leaves; ++leaf) {
    weight += totals[leaf * stride + 2 * n_outputs];
    cut += totals[leaf * stride + output] - within(leaf);
  }
  const double of_all = cut / weight;
  for (int leaf = 0; leaf < n_leaves; ++leaf) {
    const double own = totals[leaf * stride + 2 * n_outputs];
    const double g = said_to_all(within(leaf), own, of_all);
    values[static_cast<uint64>(leaf) * n_outputs + output] = stored_leaf(g, own, rules, output);
  }
}

// Adds the values of leaves to the scores of their rows, a warp a row. Blocks along y share the rows of a chunk.
extern "C" __global__ void add_leaves(const polyleaf::RowChunk* chunks, const uint32* rows, const float* values,
                                      const double* unit, int n_outputs, uint64 raw_stride, double* raw) {
  using namespace polyleaf;
  const RowChunk chunk = chunks[blockIdx.x];
  const float* value = values + static_cast<uint64>(chunk.target) * n_outputs;
  const int lane = threadIdx.x & 31;
  const uint32 n_warps = gridDim.y * (blockDim.x >> 5);
  for (uint32 i = chunk.begin + blockIdx.y * (blockDim.x >> 5) + (threadIdx.x >> 5); i < chunk.end; i += n_warps) {
    double* row = raw + rows[i] * raw_stride;
    for (int j = lane; j < n_outputs; j += 32) row[j] += unit[j] * to_double(value[j]);
  }
}

// The leaf of each row of the training table, by its codes.
extern "C" __global__ void route_rows(polyleaf::Routes tree, polyleaf::BinnedTable table, int* out) {
  using namespace polyleaf;
  const uint64 row = blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x;
  if (row >= table.n_rows) return;
  int node = 0;
  while (tree.left[node] >= 0) {
    const int f = tree.feature[node];
    const CodeSplit split =
        split_by_code(tree.bin[node], tree.missing_left[node] != 0, static_cast<uint32>(table.value_bins[f]));
    node = tree.left[node] + (goes_left(split, code_of(table, row, f)) ? 0 : 1);
  }
  out[row] = tree.leaf[node];
}
