// Sketches of gradients, and their rounding to integers.
#pragma once

#include "leaves.cuh"
#include "rules/dither.hpp"
#include "rules/exact_sum.hpp"
#include "rules/grid.hpp"

// Per row: the weighted sum over its values of a term.
extern "C" __global__ void sum_rows(polyleaf::FloatRows rows, const double* share, uint64 n_rows, int n_outputs,
                                    int term, double* out) {
  using namespace polyleaf;
  const uint64 row = (blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x) >> 5;
  if (row >= n_rows) return;
  double sum = 0;
  for (int j = threadIdx.x & 31; j < n_outputs; j += 32) {
    const double x = to_double(rows.values[row * rows.stride + j]);
    sum += share[j] * term_of(static_cast<Term>(term), x);
  }
  sum = warp_sum(sum);
  if ((threadIdx.x & 31) == 0) out[row] = sum;
}

// Per row: mixtures of its outputs. A warp a row.
extern "C" __global__ void mix_outputs(polyleaf::FloatRows rows, uint64 n_rows, polyleaf::Mixtures of, float* out) {
  using namespace polyleaf;
  const uint64 row = (blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x) >> 5;
  if (row >= n_rows) return;
  const int lane = threadIdx.x & 31;
  const float* x = rows.values + row * rows.stride;
  for (int mixture = 0; mixture < of.n_mixtures; ++mixture) {
    double sum = 0;
    for (int i = of.begin[mixture] + lane; i < of.begin[mixture + 1]; i += 32)
      sum += of.share[i] * to_double(x[of.output[i]]);
    sum = warp_sum(sum);
    if (lane == 0) out[row * of.n_mixtures + mixture] = to_float(sum);
  }
}

namespace polyleaf {

// What is summed over the rows: magnitudes, or squares, times the row's weight.
__device__ inline double column_term(const Columns& of, const FloatRows& rows, uint64 row, int output) {
  const double x = to_double(rows.values[row * rows.stride + output]), term = of.squares != 0 ? x * x : fabs(x);
  return of.terms.weight != nullptr ? of.terms.weight[row] * term : term;
}

// The rows of a block along x, and the output of a thread.
struct ColumnPart {
  uint64 begin;
  uint64 end;
  int output;
};

__device__ inline ColumnPart part_of(const Columns& of) {
  const uint64 begin = static_cast<uint64>(blockIdx.x) * of.rows_per_block;
  return {begin, min(begin + of.rows_per_block, of.terms.n_rows),
          static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x)};
}

// Blocks along z are of gradients and of Hessians.
__device__ inline FloatRows rows_of(const Columns& of) {
  return blockIdx.z == 0 ? of.terms.gradient : of.terms.hessian;
}

}  // namespace polyleaf

// The largest of each block of rows, a thread per output: [gradients, Hessians][block][output].
extern "C" __global__ void largest_columns(polyleaf::Columns of, double* parts) {
  using namespace polyleaf;
  const ColumnPart part = part_of(of);
  const FloatRows rows = rows_of(of);
  const int n_outputs = of.terms.n_outputs;
  if (part.output >= n_outputs) return;
  double largest = 0;
#pragma unroll 8
  for (uint64 row = part.begin; row < part.end; ++row) largest = fmax(largest, column_term(of, rows, row, part.output));
  const uint64 block = static_cast<uint64>(blockIdx.z) * gridDim.x + blockIdx.x;
  parts[block * n_outputs + part.output] = largest;
}

// Grids of sums of so many terms (rules/exact_sum.hpp): the coarse ones, then the fine ones. A warp per output; blocks
// along y are of gradients and of Hessians.
extern "C" __global__ void choose_grids(const double* parts, int n_parts, int n_outputs, double n_terms,
                                        double* grids) {
  using namespace polyleaf;
  const int output = blockIdx.x;
  const double* own = parts + static_cast<uint64>(blockIdx.y) * n_parts * n_outputs;
  double largest = 0;
  for (int part = threadIdx.x; part < n_parts; part += 32)
    largest = fmax(largest, own[static_cast<uint64>(part) * n_outputs + output]);
  largest = warp_max(largest);
  if (threadIdx.x != 0) return;
  const SumGrid grid = sum_grid(largest, n_terms);
  double* out = grids + static_cast<uint64>(blockIdx.y) * 2 * n_outputs;
  out[output] = grid.coarse;
  out[n_outputs + output] = grid.fine;
}

// Sums over blocks of rows, both parts of each, a thread per output: [gradients, Hessians][block][coarse,
// fine][output]. `least`: the smallest gradient of the block and output.
extern "C" __global__ void sum_columns(polyleaf::Columns of, const double* grids, double* parts, float* least) {
  using namespace polyleaf;
  const ColumnPart part = part_of(of);
  const FloatRows rows = rows_of(of);
  const int n_outputs = of.terms.n_outputs, output = part.output;
  if (output >= n_outputs) return;
  const SumGrid grid = grid_of(grids + static_cast<uint64>(blockIdx.z) * 2 * n_outputs, n_outputs, output);
  ExactSum sum;
  double smallest = 0;
#pragma unroll 8
  for (uint64 row = part.begin; row < part.end; ++row) {
    sum.add(column_term(of, rows, row, output), grid);
    smallest = fmin(smallest, to_double(rows.values[row * rows.stride + output]));
  }
  const uint64 block = static_cast<uint64>(blockIdx.z) * gridDim.x + blockIdx.x;
  double* out = parts + block * 2 * n_outputs;
  out[output] = sum.coarse;
  out[n_outputs + output] = sum.fine;
  if (least != nullptr && blockIdx.z == 0) least[block * n_outputs + output] = to_float(smallest);
}

// The unit of each output, from partial sums of magnitudes; a warp per output, blocks along y as above. What is not
// finite is reported.
extern "C" __global__ void choose_units(const double* parts, const float* least, int n_parts, int n_outputs,
                                        polyleaf::UnitRules rules, polyleaf::Units out, int* problems) {
  using namespace polyleaf;
  const int output = blockIdx.x;
  ExactSum parts_of;
  for (int part = threadIdx.x; part < n_parts; part += 32) {
    const double* both = parts + (static_cast<uint64>(blockIdx.y) * n_parts + part) * 2 * n_outputs;
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
  const double u = isfinite(sum) ? grid_unit(rules.limit, sum) : 1.0;
  const int at = blockIdx.y * n_outputs + output;
  out.unit[at] = u;
  out.scale[at] = rules.weight_unit / u;
  if (out.factor != nullptr && blockIdx.y == 0) out.factor[output] = rules.gain_weight[output] * u * u;
}

// Rows to integers, [tile][row][lanes]; a thread a channel of a row. `curvature`: what the weight channel holds;
// null: 1. At random without weights only.
extern "C" __global__ void quantize(polyleaf::Gradients of, const float* curvature, polyleaf::Scales scales,
                                    polyleaf::Channels channels, int at_random, int* payload) {
  using namespace polyleaf;
  const int n_channels = channels.n_channels, lanes = channels.lanes, n_outputs = of.n_outputs;
  const uint64 at = blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x, row = at / n_channels;
  if (row >= of.n_rows) return;
  const int channel = static_cast<int>(at % n_channels), of_hessian = channel - channels.hessian_channel;
  const double w = of.weight != nullptr ? of.weight[row] * scales.weight : 1.0;
  const auto rounded = [&](float number, double scale, int output) {
    if (at_random == 0) return on_grid(to_double(number), scale, w);
    const double by = dither(__float_as_uint(number), static_cast<uint32>(row), static_cast<uint32>(output));
    return to_int32(to_double(number) * scale + by);
  };
  const auto cell = [row](const FloatRows& rows, int output) { return rows.values[row * rows.stride + output]; };
  int value = 0;
  if (channel < n_outputs)
    value = rounded(cell(of.gradient, channel), scales.gradient[channel], channel);
  else if (of.hessian.values != nullptr && of_hessian >= 0 && of_hessian < n_outputs)
    value = rounded(cell(of.hessian, of_hessian), scales.hessian[of_hessian], n_outputs + of_hessian);
  else if (channel == channels.count_channel)
    value = 1;
  else if (channel == channels.weight_channel)
    value = curvature != nullptr ? rounded(curvature[row], *scales.shared, n_outputs) : to_int32(w * *scales.shared);
  payload[(channel / lanes * of.n_rows + row) * lanes + channel % lanes] = value;
}
