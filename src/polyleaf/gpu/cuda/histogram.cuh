// Histograms of a level: integers in shared memory, a warp takes a row or a few, a lane a channel.
#pragma once

#include "common.cuh"

namespace polyleaf {

constexpr int kFeatures = POLYLEAF_FEATURES_PER_BLOCK;  // of a quad: 1, 2 or 4
constexpr int kLanes = POLYLEAF_LANES;                  // channels of a tile: 8, 16 or 32
constexpr int kRows = 32 / kLanes;                      // that a warp takes at a time
constexpr int kAhead = 8;                               // rows of a lane whose numbers are fetched together

// Numbers of a node.
__device__ inline uint64 node_size(const HistogramSlice& slice) {
  return static_cast<uint64>(slice.n_quads) * kQuad * slice.n_bins * slice.n_channels;
}

__device__ inline bool is_here(const HistogramSlice& slice, int node) {
  return node >= slice.first_node && node < slice.first_node + slice.n_nodes;
}

}  // namespace polyleaf

// One block per part of a quad of features (x), tile of channels (y) and chunk of rows (z).
extern "C" __global__ void __launch_bounds__(1024)
    build_histograms(const polyleaf::Level* level, const polyleaf::RowChunk* chunks, int first_chunk,
                     polyleaf::HistogramSlice slice, polyleaf::BinnedTable table, const uint32* rows,
                     const int* payload) {
  using namespace polyleaf;
  extern __shared__ int sums[];
  const int which = first_chunk + blockIdx.z;
  if (which >= level->n_chunks) return;
  const RowChunk chunk = chunks[which];
  if (!is_here(slice, chunk.target)) return;
  const int n_bins = slice.n_bins;
  constexpr int kParts = kQuad / kFeatures;
  const int position = blockIdx.x / kParts, part = blockIdx.x % kParts, tile = blockIdx.y;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n_warps = blockDim.x >> 5;
  const int channel = lane % kLanes, in_turn = lane / kLanes;
  for (int i = threadIdx.x; i < kFeatures * n_bins * kLanes; i += blockDim.x) sums[i] = 0;
  __syncthreads();
  const uint32* code = reinterpret_cast<const uint32*>(table.codes) + slice.quads[position] * table.n_rows;
  const int* values = payload + tile * table.n_rows * kLanes + channel;
  for (uint32 base = chunk.begin + warp * 32; base < chunk.end; base += n_warps * 32) {
    const uint32 n = min(32u, chunk.end - base);
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
  const uint64 node = chunk.target - slice.first_node;
  const uint64 first_bin = ((node * slice.n_quads + position) * kQuad + part * kFeatures) * n_bins;
  int* to = slice.histograms + first_bin * slice.n_channels + tile * kLanes;
  for (int i = threadIdx.x; i < kFeatures * n_bins * kLanes; i += blockDim.x) {
    int* cell = to + static_cast<uint64>(i / kLanes) * slice.n_channels + i % kLanes;
    if (chunk.alone)
      *cell = sums[i];
    else if (sums[i] != 0)
      atomicAdd(cell, sums[i]);
  }
}

// Histograms that several blocks add to begin at 0.
extern "C" __global__ void clear_histograms(const polyleaf::Level* level, const polyleaf::RowChunk* chunks,
                                            int first_chunk, polyleaf::HistogramSlice slice) {
  using namespace polyleaf;
  const int which = first_chunk + blockIdx.y;
  if (which >= level->n_chunks) return;
  const RowChunk chunk = chunks[which];
  if (!is_here(slice, chunk.target)) return;
  if (chunk.alone || (which > 0 && chunks[which - 1].target == chunk.target)) return;
  const uint64 size = node_size(slice);
  int4* to = reinterpret_cast<int4*>(slice.histograms + (chunk.target - slice.first_node) * size);
  for (uint64 i = blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x; i < size / 4;
       i += static_cast<uint64>(gridDim.x) * blockDim.x)
    to[i] = make_int4(0, 0, 0, 0);
}

// The larger child = parent - smaller child. `pairs`: positions of parent, built child, other child.
extern "C" __global__ void subtract_histograms(const polyleaf::Level* level, const int* pairs, const int* parents,
                                               polyleaf::HistogramSlice children) {
  if (static_cast<int>(blockIdx.y) >= level->n_pairs) return;
  const uint64 size = polyleaf::node_size(children);
  const int* pair = pairs + 3 * blockIdx.y;
  const int4* from = reinterpret_cast<const int4*>(parents + pair[0] * size);
  const int4* what = reinterpret_cast<const int4*>(children.histograms + pair[1] * size);
  int4* out = reinterpret_cast<int4*>(children.histograms + pair[2] * size);
  for (uint64 i = blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x; i < size / 4;
       i += static_cast<uint64>(gridDim.x) * blockDim.x) {
    const int4 a = from[i], b = what[i];
    out[i] = make_int4(a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w);
  }
}

// Sums of each node: those over the bins of its first feature. A block takes 32 channels, a warp of it some bins.
extern "C" __global__ void sum_nodes(const polyleaf::Level* level, polyleaf::HistogramSlice slice, int* totals) {
  __shared__ int sums[8][32];
  const int node = blockIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5, channel = blockIdx.y * 32 + lane;
  if (slice.first_node + node >= level->n_nodes) return;
  const int* bin = slice.histograms + node * polyleaf::node_size(slice);
  int sum = 0;
  if (channel < slice.n_channels)
    for (int b = warp; b < slice.n_bins; b += 8) sum += bin[static_cast<uint64>(b) * slice.n_channels + channel];
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || channel >= slice.n_channels) return;
  for (int w = 1; w < 8; ++w) sum += sums[w][lane];
  totals[static_cast<uint64>(node) * slice.n_channels + channel] = sum;
}
