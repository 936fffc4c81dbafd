// From a table to bins: cut points of columns whose values are sorted, and the code of each cell.
#pragma once

#include "common.cuh"
#include "rules/cut_choice.hpp"

namespace polyleaf::bins {

// A code takes a byte, and one of the 256 is that of missing values.
constexpr int kMostBins = 255;

// A block encodes this many quads of features: in either order of memory a warp reads whole sectors, and its writes are
// such too.
constexpr int kEncodeQuads = kEncodeFeatures / kQuad;

// Of a feature's cuts in shared memory. Odd, so that features begin in different banks.
constexpr int kCutStride = kMostBins + 2;

// There is no standard header to have it from.
__device__ inline double infinity() { return __longlong_as_double(0x7ff0000000000000ll); }

// The number of cuts below a value; they are padded with infinity to 2 * half - 1.
__device__ inline int bin_of(double value, const double* cuts, int half) {
  int bin = 0;
  for (int step = half; step > 0; step /= 2)
    if (cuts[bin + step - 1] < value) bin += step;
  return bin;
}

// The bin of a value is the first b with value <= cuts[b], compared as float64; NaN has the code after the last bin.
// Blocks along x share the features, blocks along y the rows.
template <class Real>
__device__ void encode(const Table& table, const Cuts& cuts, uint8* codes) {
  const int n_features = table.n_features, most_cuts = cuts.most_cuts;
  const int64 n_rows = static_cast<int64>(table.n_rows);
  __shared__ double shared_cuts[kEncodeFeatures * kCutStride];
  const int first = static_cast<int>(blockIdx.x) * kEncodeFeatures;
  const int n_here = n_features - first < kEncodeFeatures ? n_features - first : kEncodeFeatures;
  const int n_threads = static_cast<int>(blockDim.x);
  for (int at = static_cast<int>(threadIdx.x); at < kEncodeFeatures * kCutStride; at += n_threads) {
    const int feature = at / kCutStride, cut = at % kCutStride;
    const bool given = feature < n_here && cut < most_cuts;
    shared_cuts[at] = given ? cuts.cuts[static_cast<int64>(first + feature) * most_cuts + cut] : infinity();
  }
  __syncthreads();
  int half = 1;
  while (2 * half - 1 < most_cuts) half *= 2;

  const int quad = static_cast<int>(threadIdx.x) % kEncodeQuads;
  const int quad_features = n_here - quad * kQuad;  // 0 or less: the quad is behind the table
  if (quad_features <= 0) return;
  const int rows_at_once = n_threads / kEncodeQuads;
  const int64 rows_of_all = static_cast<int64>(gridDim.y) * rows_at_once;
  uint8* quad_codes = codes + static_cast<int64>(first / kQuad + quad) * n_rows * kQuad;
  for (int64 row = static_cast<int64>(blockIdx.y) * rows_at_once + threadIdx.x / kEncodeQuads; row < n_rows;
       row += rows_of_all) {
    const Real* cells =
        static_cast<const Real*>(table.cells) + row * table.row_stride + (first + quad * kQuad) * table.column_stride;
    Real values[kQuad];  // all under way at once; zeros behind the table, where all cuts are infinite
#pragma unroll
    for (int k = 0; k < kQuad; ++k) values[k] = k < quad_features ? cells[k * table.column_stride] : Real{0};
    unsigned packed = 0;
#pragma unroll
    for (int k = 0; k < kQuad; ++k) {
      const int here = quad * kQuad + k;
      const bool missing = values[k] != values[k];
      const int code =
          missing ? cuts.n_cuts[first + here] + 1 : bin_of(to_double(values[k]), shared_cuts + here * kCutStride, half);
      packed |= static_cast<unsigned>(code) << (8 * k);  // the first feature has the lowest address
    }
    *reinterpret_cast<unsigned*>(quad_codes + row * kQuad) = packed;
  }
}

// A block takes a column: its distinct values are value[first[column]], ..., value[first[column + 1] - 1], with the
// weight of each together with those before it. Writes max_bins - 1 cuts, padded with infinity, and their number.
template <class Real>
__device__ void choose_cuts(const Real* value, const int64* through, const int64* first, int max_bins, double* cuts,
                            int* n_cuts) {
  __shared__ int found[kMostBins], heavy[kMostBins], bin_end[kMostBins];
  __shared__ int n_bins[kMostBins + 1], order[kMostBins + 1];
  __shared__ double remainder[kMostBins + 1];
  __shared__ int n_heavy, n_ends;
  const int thread = static_cast<int>(threadIdx.x), n_threads = static_cast<int>(blockDim.x);
  const int64 column = blockIdx.x;
  const ValueWeights<int64> values = {through + first[column], static_cast<int>(first[column + 1] - first[column])};
  value += first[column];
  if (thread == 0) n_heavy = 0;
  __syncthreads();
  if (values.n_values > max_bins) {
    const double share = bin_share(values, max_bins);
    for (int i = thread; i < values.n_values; i += n_threads)
      if (weight_of(values, i, i + 1) >= share) found[atomicAdd(&n_heavy, 1)] = i;
  }
  __syncthreads();
  for (int k = thread; k < n_heavy; k += n_threads) {  // each finds its place among the others
    int place = 0;
    for (int other = 0; other < n_heavy; ++other) place += found[other] < found[k] ? 1 : 0;
    heavy[place] = found[k];
  }
  __syncthreads();
  if (thread == 0) n_ends = choose_bin_ends(values, max_bins, {heavy, n_heavy}, {n_bins, remainder, order}, bin_end);
  __syncthreads();
  for (int k = thread; k < max_bins - 1; k += n_threads)
    cuts[column * (max_bins - 1) + k] =
        k < n_ends ? between(to_double(value[bin_end[k]]), to_double(value[bin_end[k] + 1])) : infinity();
  if (thread == 0) n_cuts[column] = n_ends;
}

}  // namespace polyleaf::bins

extern "C" __global__ void choose_cuts_of_float32(const float* value, const int64* through, const int64* first,
                                                  int max_bins, double* cuts, int* n_cuts) {
  polyleaf::bins::choose_cuts(value, through, first, max_bins, cuts, n_cuts);
}

extern "C" __global__ void choose_cuts_of_float64(const double* value, const int64* through, const int64* first,
                                                  int max_bins, double* cuts, int* n_cuts) {
  polyleaf::bins::choose_cuts(value, through, first, max_bins, cuts, n_cuts);
}

// Codes of a table: quads of features x rows x 4, zeros where the last quad has fewer.
extern "C" __global__ void encode_float(polyleaf::Table table, polyleaf::Cuts cuts, uint8* codes) {
  polyleaf::bins::encode<float>(table, cuts, codes);
}

extern "C" __global__ void encode_double(polyleaf::Table table, polyleaf::Cuts cuts, uint8* codes) {
  polyleaf::bins::encode<double>(table, cuts, codes);
}
