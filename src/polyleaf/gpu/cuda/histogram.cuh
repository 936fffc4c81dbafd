// Histograms of a level: integers in shared memory, a warp takes a row or a few, a lane a channel.
#pragma once

#include "common.cuh"

namespace polyleaf {

constexpr int kFeatures = POLYLEAF_FEATURES_PER_BLOCK;  // of a group: 1, 2 or 4
constexpr int kLanes = POLYLEAF_LANES;                  // channels of a tile: 8, 16 or 32
constexpr int kRows = 32 / kLanes;                      // that a warp takes at a time
constexpr int kAhead = 8;                               // rows of a lane whose numbers are fetched together

}  // namespace polyleaf

// One block per part of a group of features (x), tile of channels (y) and piece of work (z). Histograms stand as
// [node][group][feature of the group][bin][channel]; in memory are those of some nodes of the level, and of some
// groups.
extern "C" __global__ void __launch_bounds__(1024)
    build_histograms(const polyleaf::Level* level, const polyleaf::Work* works, int first_work, int first_node,
                     int n_nodes, int n_groups, const int* groups, const uint32* rows, const uint8* codes,
                     uint64 n_rows, const int* payload, int n_channels, int n_bins, int* histograms) {
  using namespace polyleaf;
  extern __shared__ int sums[];
  const int which = first_work + blockIdx.z;
  if (which >= level->n_works) return;
  const Work work = works[which];
  if (work.target < first_node || work.target >= first_node + n_nodes) return;
  constexpr int kParts = kGroup / kFeatures;
  const int position = blockIdx.x / kParts, part = blockIdx.x % kParts, tile = blockIdx.y;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n_warps = blockDim.x >> 5;
  const int channel = lane % kLanes, in_turn = lane / kLanes;
  for (int i = threadIdx.x; i < kFeatures * n_bins * kLanes; i += blockDim.x) sums[i] = 0;
  __syncthreads();
  const uint32* code = reinterpret_cast<const uint32*>(codes) + groups[position] * n_rows;
  const int* values = payload + tile * n_rows * kLanes + channel;
  for (uint32 base = work.begin + warp * 32; base < work.end; base += n_warps * 32) {
    const uint32 n = min(32u, work.end - base);
    const uint32 own_row = rows[base + min(static_cast<uint32>(lane), n - 1)];
    const uint32 own_codes = code[own_row] >> (8 * kFeatures * part);
    for (uint32 i = in_turn; i < 32; i += min(32, kAhead * kRows)) {
      if (i - in_turn >= n) break;
      int value[kAhead];
#pragma unroll
      for (int a = 0; a < min(kAhead, kLanes); ++a) {
        const uint32 which = i + a * kRows;
        const uint64 row = __shfl_sync(kAllLanes, own_row, which);
        value[a] = which < n ? values[row * kLanes] : 0;
      }
#pragma unroll
      for (int a = 0; a < min(kAhead, kLanes); ++a) {
        const uint32 which = i + a * kRows;
        const uint32 bins = __shfl_sync(kAllLanes, own_codes, which);
        if (which >= n) continue;
#pragma unroll
        for (int f = 0; f < kFeatures; ++f)
          atomicAdd(&sums[(f * n_bins + ((bins >> (8 * f)) & 255u)) * kLanes + channel], value[a]);
      }
    }
  }
  __syncthreads();
  const uint64 node = work.target - first_node;
  const uint64 first_bin = ((node * n_groups + position) * kGroup + part * kFeatures) * n_bins;
  int* to = histograms + first_bin * n_channels + tile * kLanes;
  for (int i = threadIdx.x; i < kFeatures * n_bins * kLanes; i += blockDim.x) {
    int* cell = to + static_cast<uint64>(i / kLanes) * n_channels + i % kLanes;
    if (work.alone)
      *cell = sums[i];
    else if (sums[i] != 0)
      atomicAdd(cell, sums[i]);
  }
}

// Histograms that several blocks add to begin at 0. `size`: numbers of a node.
extern "C" __global__ void clear_histograms(const polyleaf::Level* level, const polyleaf::Work* works, int first_work,
                                            int first_node, int n_nodes, uint64 size, int* histograms) {
  using namespace polyleaf;
  const int which = first_work + blockIdx.y;
  if (which >= level->n_works) return;
  const Work work = works[which];
  if (work.target < first_node || work.target >= first_node + n_nodes) return;
  if (work.alone || (which > 0 && works[which - 1].target == work.target)) return;
  int4* to = reinterpret_cast<int4*>(histograms + (work.target - first_node) * size);
  for (uint64 i = blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x; i < size / 4;
       i += static_cast<uint64>(gridDim.x) * blockDim.x)
    to[i] = make_int4(0, 0, 0, 0);
}

// The larger child = parent - smaller child. `pairs`: positions of parent, built child, other child.
extern "C" __global__ void subtract_histograms(const polyleaf::Level* level, const int* pairs, const int* parents,
                                               int* children, uint64 size) {
  if (static_cast<int>(blockIdx.y) >= level->n_pairs) return;
  const int* pair = pairs + 3 * blockIdx.y;
  const int4* from = reinterpret_cast<const int4*>(parents + pair[0] * size);
  const int4* what = reinterpret_cast<const int4*>(children + pair[1] * size);
  int4* out = reinterpret_cast<int4*>(children + pair[2] * size);
  for (uint64 i = blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x; i < size / 4;
       i += static_cast<uint64>(gridDim.x) * blockDim.x) {
    const int4 a = from[i], b = what[i];
    out[i] = make_int4(a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w);
  }
}

// Sums of each node: those over the bins of its first feature. A block takes 32 channels, a warp of it some bins.
extern "C" __global__ void sum_nodes(const polyleaf::Level* level, int first_node, int n_groups, const int* histograms,
                                     int n_bins, int n_channels, int* totals) {
  __shared__ int sums[8][32];
  const int node = blockIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5, channel = blockIdx.y * 32 + lane;
  if (first_node + node >= level->n_nodes) return;
  const int* bin = histograms + static_cast<uint64>(node) * n_groups * polyleaf::kGroup * n_bins * n_channels;
  int sum = 0;
  if (channel < n_channels)
    for (int b = warp; b < n_bins; b += 8) sum += bin[static_cast<uint64>(b) * n_channels + channel];
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || channel >= n_channels) return;
  for (int w = 1; w < 8; ++w) sum += sums[w][lane];
  totals[static_cast<uint64>(node) * n_channels + channel] = sum;
}
