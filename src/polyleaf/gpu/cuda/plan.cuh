// From one level of nodes to the next, planned on the device: the host launches and need not wait.
#pragma once

#include "common.cuh"
#include "rules/acceptance.hpp"
#include "rules/pruning.hpp"
#include "rules/routing.hpp"

// One block. Splits the nodes of a level whose gain is positive and whose path minimum reaches the bar: best-first
// growth never keeps the others.
extern "C" __global__ void plan_level(const polyleaf::Level* level, polyleaf::LevelNodes of, polyleaf::LevelRules by,
                                      polyleaf::NextLevel next) {
  using namespace polyleaf;
  __shared__ int buffer[32];
  VisitedNode* nodes = of.nodes;
  const uint32 chunk_rows = by.chunk_rows;
  const int n_visited = level->next_node;
  int all_splits = 0, all_pairs = 0, all_chunks = 0, all_lefts = 0;
  for (int base = 0; base < level->n_nodes; base += blockDim.x) {
    const int position = base + threadIdx.x;
    const bool is_node = position < level->n_nodes;
    const int index = is_node ? of.node_of[position] : 0;
    const bool splits = is_node && nodes[index].gain > 0 && !is_hopeless(nodes[index].path_minimum, by.bar);
    int rank;
    const int n_splits = block_scan(splits, &rank, buffer);
    uint32 begin = 0, middle = 0, end = 0;
    int left = -1;
    bool goes_on = false;
    if (splits) {
      begin = nodes[index].begin;
      end = nodes[index].end;
      middle = begin + of.n_left[position];
      left = n_visited + 2 * (all_splits + rank);
      nodes[index].left = left;
      const double minimum = nodes[index].path_minimum;
      nodes[left] = {0.0, 0.0, minimum, begin, middle, -1, -1, -1, 0};
      nodes[left + 1] = {0.0, 0.0, minimum, middle, end, -1, -1, -1, 0};
      goes_on = by.may_go_on != 0 && enough_for_two(max(middle - begin, end - middle), by.rules.min_samples_leaf);
    }
    int before;
    const int n_lefts = block_scan(static_cast<int>(middle - begin), &before, buffer);
    if (is_node) next.lefts_before[position] = all_lefts + before;
    int pair;
    const int n_pairs = block_scan(goes_on, &pair, buffer);
    pair += all_pairs;
    const int small = middle - begin <= end - middle ? 0 : 1;
    int n_chunks[2] = {0, 0};
    for (int side = 0; side < 2; ++side) {
      const uint32 n_rows = side == 0 ? middle - begin : end - middle;
      if (goes_on && (by.subtract == 0 || side == small))
        n_chunks[side] = static_cast<int>((n_rows + chunk_rows - 1) / chunk_rows);
    }
    int first_chunk;
    const int n_chunks_here = block_scan(n_chunks[0] + n_chunks[1], &first_chunk, buffer);
    first_chunk += all_chunks;
    if (is_node) {
      next.child[2 * position] = goes_on ? 2 * pair : -1;
      next.child[2 * position + 1] = goes_on ? 2 * pair + 1 : -1;
    }
    if (goes_on) {
      next.pairs[3 * pair] = position;
      next.pairs[3 * pair + 1] = 2 * pair + small;
      next.pairs[3 * pair + 2] = 2 * pair + 1 - small;
      for (int side = 0; side < 2; ++side) {
        next.node_of[2 * pair + side] = left + side;
        const uint32 from = side == 0 ? begin : middle, to = side == 0 ? middle : end;
        for (int c = 0; c < n_chunks[side]; ++c)
          next.chunks[first_chunk++] = {2 * pair + side, from + c * chunk_rows, min(to, from + (c + 1) * chunk_rows),
                                        n_chunks[side] == 1};
      }
    }
    all_splits += n_splits;
    all_pairs += n_pairs;
    all_chunks += n_chunks_here;
    all_lefts += n_lefts;
  }
  if (threadIdx.x == 0) *next.level = {2 * all_pairs, all_chunks, all_pairs, n_visited + 2 * all_splits};
}

// Whether the row at a place goes left; no where its node is not split.
__device__ inline bool row_goes_left(const polyleaf::LevelNodes& of, int position, uint32 row,
                                     const polyleaf::BinnedTable& table) {
  using namespace polyleaf;
  if (position < 0) return false;
  const VisitedNode& node = of.nodes[of.node_of[position]];
  if (node.left < 0) return false;
  const bool missing_left = (node.flags & kMissingLeft) != 0;
  const CodeSplit split = split_by_code(node.bin, missing_left, static_cast<uint32>(table.value_bins[node.feature]));
  return goes_left(split, code_of(table, row, node.feature));
}

// A bit for each place, and how many are set.
extern "C" __global__ void take_sides(polyleaf::LevelNodes of, polyleaf::Places places, polyleaf::BinnedTable table,
                                      polyleaf::Sides sides) {
  using namespace polyleaf;
  __shared__ int sums[32];
  const uint32 place = blockIdx.x * blockDim.x + threadIdx.x;
  const bool goes = place < places.n_places && row_goes_left(of, places.position[place], places.rows[place], table);
  const uint32 bits = __ballot_sync(kAllLanes, goes);
  if ((threadIdx.x & 31) == 0) {
    sides.left[place >> 5] = bits;
    sums[threadIdx.x >> 5] = __popc(bits);
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  int sum = 0;
  for (int w = 0; w < static_cast<int>(blockDim.x >> 5); ++w) sum += sums[w];
  sides.block_lefts[blockIdx.x] = sum;
}

// One block: sums up to each number, without it, in place.
extern "C" __global__ void sum_before(int* values, int n) {
  using namespace polyleaf;
  __shared__ int buffer[32];
  int all = 0;
  for (int base = 0; base < n; base += blockDim.x) {
    const int i = base + threadIdx.x;
    int before;
    const int sum = block_scan(i < n ? values[i] : 0, &before, buffer);
    if (i < n) values[i] = all + before;
    all += sum;
  }
}

// Rows in the order of the next level, stable. Blocks as in take_sides.
extern "C" __global__ void move_rows(polyleaf::LevelNodes of, polyleaf::NextLevel next, polyleaf::Places from,
                                     polyleaf::Sides sides, polyleaf::Places to) {
  using namespace polyleaf;
  __shared__ int sums[32];
  const uint32 place = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const uint32 bits = place < from.n_places ? sides.left[place >> 5] : 0;
  if (lane == 0) sums[warp] = __popc(bits);
  __syncthreads();
  if (place >= from.n_places) return;
  const int at = from.position[place];
  uint32 moved = place;
  int position = -1;
  if (at >= 0) {
    const VisitedNode& node = of.nodes[of.node_of[at]];
    if (node.left >= 0) {
      int before = sides.block_lefts[blockIdx.x] + __popc(bits & ((1u << lane) - 1u)) - next.lefts_before[at];
      for (int w = 0; w < warp; ++w) before += sums[w];
      const bool goes = ((bits >> lane) & 1u) != 0;
      moved = goes ? node.begin + before : node.begin + of.n_left[at] + (place - node.begin - before);
      position = next.child[2 * at + (goes ? 0 : 1)];
    }
  }
  to.rows[moved] = from.rows[place];
  to.position[moved] = position;
}
