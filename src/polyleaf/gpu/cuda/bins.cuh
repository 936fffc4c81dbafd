// From a table to bins: cut points of columns whose values are sorted, and the code of each cell.
#pragma once

#include "common.cuh"
#include "rules/cut_choice.hpp"

namespace polyleaf::bins {

// A code takes a byte, and one of the 256 is that of missing values.
constexpr int kMostBins = 255;

// A block encodes this many groups: in either order of memory a warp reads whole sectors, and its writes are such too.
constexpr int kEncodeGroups = 4;
constexpr int kEncodeFeatures = kEncodeGroups * kGroup;

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
__device__ void encode(const Real* x, long long row_stride, long long column_stride, long long n_rows, int n_features,
                       const double* cuts, const int* n_cuts, int most_cuts, unsigned char* codes) {
  __shared__ double shared_cuts[kEncodeFeatures * kCutStride];
  const int first = static_cast<int>(blockIdx.x) * kEncodeFeatures;
  const int n_here = n_features - first < kEncodeFeatures ? n_features - first : kEncodeFeatures;
  const int n_threads = static_cast<int>(blockDim.x);
  for (int at = static_cast<int>(threadIdx.x); at < kEncodeFeatures * kCutStride; at += n_threads) {
    const int feature = at / kCutStride, cut = at % kCutStride;
    const bool given = feature < n_here && cut < most_cuts;
    shared_cuts[at] = given ? cuts[static_cast<long long>(first + feature) * most_cuts + cut] : infinity();
  }
  __syncthreads();
  int half = 1;
  while (2 * half - 1 < most_cuts) half *= 2;

  const int group = static_cast<int>(threadIdx.x) % kEncodeGroups;
  const int group_features = n_here - group * kGroup;  // 0 or less: the group is behind the table
  if (group_features <= 0) return;
  const int rows_at_once = n_threads / kEncodeGroups;
  const long long rows_of_all = static_cast<long long>(gridDim.y) * rows_at_once;
  unsigned char* group_codes = codes + static_cast<long long>(first / kGroup + group) * n_rows * kGroup;
  for (long long row = static_cast<long long>(blockIdx.y) * rows_at_once + threadIdx.x / kEncodeGroups; row < n_rows;
       row += rows_of_all) {
    const Real* cells = x + row * row_stride + (first + group * kGroup) * column_stride;
    Real values[kGroup];  // all under way at once; zeros behind the table, where all cuts are infinite
#pragma unroll
    for (int k = 0; k < kGroup; ++k) values[k] = k < group_features ? cells[k * column_stride] : Real{0};
    unsigned packed = 0;
#pragma unroll
    for (int k = 0; k < kGroup; ++k) {
      const int here = group * kGroup + k;
      const bool missing = values[k] != values[k];
      const int code =
          missing ? n_cuts[first + here] + 1 : bin_of(to_double(values[k]), shared_cuts + here * kCutStride, half);
      packed |= static_cast<unsigned>(code) << (8 * k);  // the first feature has the lowest address
    }
    *reinterpret_cast<unsigned*>(group_codes + row * kGroup) = packed;
  }
}

// A block takes a column: its distinct values are value[first[column]], ..., value[first[column + 1] - 1], with the
// weight of each together with those before it. Writes max_bins - 1 cuts, padded with infinity, and their number.
template <class Real>
__device__ void choose_cuts(const Real* value, const long long* through, const long long* first, int max_bins,
                            double* cuts, int* n_cuts) {
  __shared__ int found[kMostBins], heavy[kMostBins], bin_end[kMostBins];
  __shared__ int n_bins[kMostBins + 1], order[kMostBins + 1];
  __shared__ double remainder[kMostBins + 1];
  __shared__ int n_heavy, n_ends;
  const int thread = static_cast<int>(threadIdx.x), n_threads = static_cast<int>(blockDim.x);
  const long long column = blockIdx.x;
  const ValueWeights<long long> values = {through + first[column], static_cast<int>(first[column + 1] - first[column])};
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

extern "C" __global__ void choose_cuts_of_float32(const float* value, const long long* through, const long long* first,
                                                  int max_bins, double* cuts, int* n_cuts) {
  polyleaf::bins::choose_cuts(value, through, first, max_bins, cuts, n_cuts);
}

extern "C" __global__ void choose_cuts_of_float64(const double* value, const long long* through, const long long* first,
                                                  int max_bins, double* cuts, int* n_cuts) {
  polyleaf::bins::choose_cuts(value, through, first, max_bins, cuts, n_cuts);
}

// Codes of a table: groups of 4 features x rows x 4, zeros where the last group has fewer. Strides count elements;
// `cuts` are features x most_cuts, padded with infinity.
extern "C" __global__ void encode_float(const float* x, long long row_stride, long long column_stride, long long n_rows,
                                        int n_features, const double* cuts, const int* n_cuts, int most_cuts,
                                        unsigned char* codes) {
  polyleaf::bins::encode(x, row_stride, column_stride, n_rows, n_features, cuts, n_cuts, most_cuts, codes);
}

extern "C" __global__ void encode_double(const double* x, long long row_stride, long long column_stride,
                                         long long n_rows, int n_features, const double* cuts, const int* n_cuts,
                                         int most_cuts, unsigned char* codes) {
  polyleaf::bins::encode(x, row_stride, column_stride, n_rows, n_features, cuts, n_cuts, most_cuts, codes);
}
