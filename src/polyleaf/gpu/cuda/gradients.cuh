// Sketches of gradients, and their rounding to integers.
#pragma once

#include "leaves.cuh"
#include "rules/dither.hpp"
#include "rules/exact_sum.hpp"
#include "rules/grid.hpp"

namespace polyleaf {

enum Problem { kNotFinite = 1, kNegative = 2 };

}  // namespace polyleaf

// Per row: the weighted sum over its values of a term.
extern "C" __global__ void sum_rows(const float* values, uint64 stride, const double* share, uint64 n_rows,
                                    int n_outputs, int term, double* out) {
  using namespace polyleaf;
  const uint64 row = (blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x) >> 5;
  if (row >= n_rows) return;
  double sum = 0;
  for (int j = threadIdx.x & 31; j < n_outputs; j += 32) {
    const double x = to_double(values[row * stride + j]);
    sum += share[j] * term_of(static_cast<Term>(term), x);
  }
  sum = warp_sum(sum);
  if ((threadIdx.x & 31) == 0) out[row] = sum;
}

// Per row: k mixtures, each of its own outputs: members begin[g] to begin[g + 1] of `output`, with their coefficients.
// A warp a row.
extern "C" __global__ void mix_outputs(const float* values, uint64 stride, const int* begin, const int* output,
                                       const double* coefficient, uint64 n_rows, int n_mixtures, float* out) {
  using namespace polyleaf;
  const uint64 row = (blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x) >> 5;
  if (row >= n_rows) return;
  const int lane = threadIdx.x & 31;
  const float* x = values + row * stride;
  for (int mixture = 0; mixture < n_mixtures; ++mixture) {
    double sum = 0;
    for (int i = begin[mixture] + lane; i < begin[mixture + 1]; i += 32)
      sum += coefficient[i] * to_double(x[output[i]]);
    sum = warp_sum(sum);
    if (lane == 0) out[row * n_mixtures + mixture] = to_float(sum);
  }
}

namespace polyleaf {

// What is summed over the rows: magnitudes, or squares, times the row's weight.
__device__ inline double column_term(const float* values, uint64 stride, const double* weight, uint64 row, int output,
                                     int squares) {
  const double x = to_double(values[row * stride + output]), term = squares != 0 ? x * x : fabs(x);
  return weight != nullptr ? weight[row] * term : term;
}

}  // namespace polyleaf

// The largest of each block of rows, a thread per output.
extern "C" __global__ void largest_columns(const float* values, uint64 stride, const double* weight, uint64 n_rows,
                                           int n_outputs, int squares, int rows_per_block, double* parts) {
  const int output = blockIdx.y * blockDim.x + threadIdx.x;
  if (output >= n_outputs) return;
  const uint64 begin = static_cast<uint64>(blockIdx.x) * rows_per_block, end = min(begin + rows_per_block, n_rows);
  double largest = 0;
#pragma unroll 8
  for (uint64 row = begin; row < end; ++row)
    largest = fmax(largest, polyleaf::column_term(values, stride, weight, row, output, squares));
  parts[static_cast<uint64>(blockIdx.x) * n_outputs + output] = largest;
}

// Grids of sums of so many terms (rules/exact_sum.hpp): the coarse ones, then the fine ones. A warp per output.
extern "C" __global__ void choose_grids(const double* parts, int n_parts, int n_outputs, double n_terms,
                                        double* grids) {
  using namespace polyleaf;
  const int output = blockIdx.x;
  double largest = 0;
  for (int part = threadIdx.x; part < n_parts; part += 32)
    largest = fmax(largest, parts[static_cast<uint64>(part) * n_outputs + output]);
  largest = warp_max(largest);
  if (threadIdx.x != 0) return;
  const SumGrid grid = sum_grid(largest, n_terms);
  grids[output] = grid.coarse;
  grids[n_outputs + output] = grid.fine;
}

// Sums over blocks of rows, both parts of each, a thread per output. `least`: the smallest value of the block and
// output.
extern "C" __global__ void sum_columns(const float* values, uint64 stride, const double* weight, uint64 n_rows,
                                       int n_outputs, int squares, int rows_per_block, const double* grids,
                                       double* parts, float* least) {
  using namespace polyleaf;
  const int output = blockIdx.y * blockDim.x + threadIdx.x;
  if (output >= n_outputs) return;
  const uint64 begin = static_cast<uint64>(blockIdx.x) * rows_per_block, end = min(begin + rows_per_block, n_rows);
  const SumGrid grid = {grids[output], grids[n_outputs + output]};
  ExactSum sum;
  double smallest = 0;
#pragma unroll 8
  for (uint64 row = begin; row < end; ++row) {
    sum.add(column_term(values, stride, weight, row, output, squares), grid);
    smallest = fmin(smallest, to_double(values[row * stride + output]));
  }
  double* out = parts + static_cast<uint64>(blockIdx.x) * 2 * n_outputs;
  out[output] = sum.coarse;
  out[n_outputs + output] = sum.fine;
  if (least != nullptr) least[static_cast<uint64>(blockIdx.x) * n_outputs + output] = to_float(smallest);
}

// The unit of each output, from partial sums of magnitudes; a warp per output. What is not finite is reported.
// `factor`: of squares of gradients in these units, in the score.
extern "C" __global__ void choose_units(const double* parts, int n_parts, int n_outputs, double limit,
                                        double weight_unit, const double* gain_weight, double* unit, double* scale,
                                        double* factor, const float* least, int* problems) {
  using namespace polyleaf;
  const int output = blockIdx.x;
  ExactSum parts_of;
  for (int part = threadIdx.x; part < n_parts; part += 32) {
    const double* both = parts + static_cast<uint64>(part) * 2 * n_outputs;
    parts_of.add({both[output], both[n_outputs + output]});
  }
  const double sum = warp_sum(parts_of.coarse) + warp_sum(parts_of.fine);
  double smallest = 0;
  for (int part = threadIdx.x; least != nullptr && part < n_parts; part += 32)
    smallest = fmin(smallest, to_double(least[static_cast<uint64>(part) * n_outputs + output]));
  smallest = -warp_max(-smallest);
  if (threadIdx.x != 0) return;
  if (!isfinite(sum)) atomicOr(problems, kNotFinite);
  if (smallest < 0) atomicOr(problems, kNegative);
  const double u = isfinite(sum) ? grid_unit(limit, sum) : 1.0;
  unit[output] = u;
  scale[output] = weight_unit / u;
  if (factor != nullptr) factor[output] = gain_weight[output] * u * u;
}

// Rows to integers, [tile][row][lanes]; a thread a channel of a row. `curvature`: what the weight channel holds;
// null: 1. At random without weights only.
extern "C" __global__ void quantize(const float* gradient, uint64 gradient_stride, const float* hessian,
                                    uint64 hessian_stride, const float* curvature, const double* weight,
                                    double weight_scale, uint64 n_rows, int n_outputs, const double* gradient_scale,
                                    const double* hessian_scale, const double* shared_scale, int n_channels, int lanes,
                                    int hessian_channel, int weight_channel, int count_channel, int at_random,
                                    int* payload) {
  using namespace polyleaf;
  const uint64 at = blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x, row = at / n_channels;
  if (row >= n_rows) return;
  const int channel = static_cast<int>(at % n_channels), of_hessian = channel - hessian_channel;
  const double w = weight != nullptr ? weight[row] * weight_scale : 1.0;
  const auto rounded = [&](float number, double scale, int of) {
    if (at_random == 0) return on_grid(to_double(number), scale, w);
    const double by = dither(__float_as_uint(number), static_cast<uint32>(row), static_cast<uint32>(of));
    return to_int32(to_double(number) * scale + by);
  };
  int value = 0;
  if (channel < n_outputs)
    value = rounded(gradient[row * gradient_stride + channel], gradient_scale[channel], channel);
  else if (hessian != nullptr && of_hessian >= 0 && of_hessian < n_outputs)
    value = rounded(hessian[row * hessian_stride + of_hessian], hessian_scale[of_hessian], n_outputs + of_hessian);
  else if (channel == count_channel)
    value = 1;
  else if (channel == weight_channel)
    value = curvature != nullptr ? rounded(curvature[row], *shared_scale, n_outputs) : to_int32(w * *shared_scale);
  payload[(channel / lanes * n_rows + row) * lanes + channel % lanes] = value;
}
