// What the kernels share: the plan of a level, numbers of the CPU's, and sums over the lanes of a warp.
#pragma once

#include "rules/scoring.hpp"
#include "rules/visited_node.hpp"

typedef unsigned char uint8;
typedef unsigned int uint32;
typedef long long int64;
typedef unsigned long long uint64;

namespace polyleaf {

constexpr uint32 kAllLanes = 0xffffffffu;
constexpr int kGroup = 4;  // features side by side: codes stand as [group][row][kGroup]

struct Work {    // some rows that one block adds up
  int target;    // position of the node in its level, or number of the leaf
  uint32 begin;  // places in the array of row numbers
  uint32 end;
  int alone;  // no other block has this target
};

struct Level {
  int n_nodes;    // nodes to be searched, by position
  int n_works;    // histograms to build, in pieces
  int n_pairs;    // siblings of which one is to be subtracted
  int next_node;  // nodes made so far
};

struct Outputs {
  int n_outputs;
  int hessian_channel;  // of the first output; -1: one for all outputs
  int weight_channel;   // of that one, or of the mean over the outputs; the row count where that is enough
  int count_channel;
  double reg_lambda;
  double min_split_gain;
  double min_child_weight;
  int min_samples_leaf;
  int has_alpha;
};

struct Best {    // the best split of a node by one feature
  double score;  // of its children; below 0 or NaN: none
  int feature;
  int bin;
  int n_left;
  int flags;  // as in VisitedNode
};

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

__device__ inline uint8 code_of(const uint8* codes, uint64 n_rows, uint64 row, int feature) {
  return codes[(feature / kGroup * n_rows + row) * kGroup + feature % kGroup];
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
