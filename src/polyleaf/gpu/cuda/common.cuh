// What the kernels share: numbers of the CPU's, codes of the table, and sums over the lanes of a warp.
#pragma once

#include "structs.cuh"

namespace polyleaf {

constexpr uint32 kAllLanes = 0xffffffffu;

// Kernels are compiled with -ftz=true, as CuPy sees to: C++ would take float32 numbers below 2^-126 for 0, the CPU does
// not. These read and write them as they are.
__device__ inline double to_double(float value) {
  double out;
  asm("cvt.f64.f32 %0, %1;" : "=d"(out) : "f"(value));
  return out;
}

__device__ inline double to_double(double value) { return value; }

__device__ inline float to_float(double value) {
  float out;
  asm("cvt.rn.f32.f64 %0, %1;" : "=f"(out) : "d"(value));
  return out;
}

__device__ inline bool is_above(float value, float limit) {
  int out;
  asm("{.reg .pred p; setp.gt.f32 p, %1, %2; selp.s32 %0, 1, 0, p;}" : "=r"(out) : "f"(value), "f"(limit));
  return out != 0;
}

__device__ inline uint8 code_of(const BinnedTable& table, uint64 row, int feature) {
  return table.codes[(feature / kQuad * table.n_rows + row) * kQuad + feature % kQuad];
}

template <class Number>
__device__ inline Number warp_sum(Number value, int width = 32) {
  for (int offset = width / 2; offset > 0; offset >>= 1) value += __shfl_xor_sync(kAllLanes, value, offset);
  return value;
}

__device__ inline double warp_max(double value, int width = 32) {
  for (int offset = width / 2; offset > 0; offset >>= 1) value = fmax(value, __shfl_xor_sync(kAllLanes, value, offset));
  return value;
}

// Exclusive sums over the threads of a block; returns the sum of all. `buffer`: 32 numbers of shared memory.
__device__ inline int block_scan(int value, int* before, int* buffer) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int sum = value;
  for (int distance = 1; distance < 32; distance <<= 1) {
    const int other = __shfl_up_sync(kAllLanes, sum, distance);
    if (lane >= distance) sum += other;
  }
  __syncthreads();
  if (lane == 31) buffer[warp] = sum;
  __syncthreads();
  int all = 0;
  *before = sum - value;
  for (int w = 0; w < static_cast<int>(blockDim.x >> 5); ++w) {
    if (w < warp) *before += buffer[w];
    all += buffer[w];
  }
  return all;
}

}  // namespace polyleaf
