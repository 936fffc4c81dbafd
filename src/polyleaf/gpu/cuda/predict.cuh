// Leaves of the rows of a table, and raw scores from them.
#pragma once

#include "common.cuh"
#include "rules/routing.hpp"

namespace polyleaf {

__device__ inline bool goes_right(const PackedNode& node, double value, const uint32* category_bits) {
  const bool missing_left = (node.feature & kGoesLeft) != 0;
  if ((node.feature & kByCategories) == 0) return goes_right(value, node.data, !missing_left);
  const uint64 words = static_cast<uint64>(__double_as_longlong(node.data));
  const bool in_set = has_number(category_bits + (words >> 16), words & 0xffff, value);
  return !category_goes_left(in_set, missing_left);
}

template <class Value>
__device__ inline const Value* cells_of(const Table& table, uint64 row) {
  return static_cast<const Value*>(table.cells) + static_cast<int64>(row) * table.row_stride;
}

// Copies the rows of each warp to shared memory: 4 columns of 8 rows at a time, so that few lanes read far apart, and
// few want the same bank.
template <class Value>
__device__ void stage_rows(const Table& table, Value* values) {
  if (table.staged == 0) return;
  const int lane = threadIdx.x % 32, first = threadIdx.x - lane;
  for (int r = first + lane / 4; r < first + 32; r += 8) {
    const uint64 row = blockIdx.x * static_cast<uint64>(blockDim.x) + r;
    if (row >= table.n_rows) break;
    const Value* cells = cells_of<Value>(table, row);
#pragma unroll 4
    for (int feature = lane % 4; feature < table.n_features; feature += 4)
      values[feature * blockDim.x + r] = cells[feature * table.column_stride];
  }
  __syncwarp();
}

// Where the values of the leaf begin that the thread's row falls into.
template <class Value>
__device__ int64 find_leaf(const Table& table, const Value* values, uint64 row, const Trees& trees, int tree) {
  const Value* own = cells_of<Value>(table, row);
  PackedNode node = trees.nodes[trees.node_begin[trees.first + tree]];
  while (node.left >= 0) {
    const int feature = node.feature & (kByCategories - 1);
    const Value value =
        table.staged != 0 ? values[feature * blockDim.x + threadIdx.x] : own[feature * table.column_stride];
    node = trees.nodes[node.left + (goes_right(node, to_double(value), trees.category_bits) ? 1 : 0)];
  }
  return __double_as_longlong(node.data);
}

// A block takes blockDim.x rows, and all trees from blockIdx.y on in steps of gridDim.y. `out`: trees x rows.
template <class Value>
__device__ void find_leaves(const Table& table, const Trees& trees, int64* out) {
  extern __shared__ double memory[];
  Value* values = reinterpret_cast<Value*>(memory);
  stage_rows(table, values);
  const uint64 row = blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x;
  if (row >= table.n_rows) return;
  for (int tree = blockIdx.y; tree < trees.n_trees; tree += gridDim.y)
    out[tree * table.n_rows + row] = find_leaf<Value>(table, values, row, trees, tree);
}

// A lane walks down so many trees at once: one waits for memory while others go on.
constexpr int kTreesAtOnce = 8;

// Where the values of the leaves begin that a row falls into, of kTrees trees that follow one another. Who has reached
// a leaf stays there until all have.
template <bool kStaged, int kTrees>
__device__ void find_leaves_at_once(const Table& table, const float* values, uint64 row, const SmallTrees& trees,
                                    int tree, int* leaf) {
  const float* own = cells_of<float>(table, row);
  const SmallNode* of_tree[kTrees];
  SmallNode node[kTrees];
  uint32 at[kTrees];
#pragma unroll
  for (int t = 0; t < kTrees; ++t) {
    of_tree[t] = trees.nodes + trees.node_begin[tree + t];
    at[t] = 0;
    node[t] = of_tree[t][0];
  }
  for (bool more = true; more;) {
    more = false;
#pragma unroll
    for (int t = 0; t < kTrees; ++t) {
      const bool inner = node[t].next != kLeaf;
      const int feature = inner ? static_cast<int>(node[t].next & 0x7fffu) : 0;
      const float value = kStaged ? values[feature * blockDim.x + threadIdx.x] : own[feature * table.column_stride];
      const bool missing_right = (node[t].next & 0x8000u) == 0;
      const bool right = goes_right(is_above(value, node[t].data), isnan(value), missing_right);
      at[t] = inner ? (node[t].next >> 16) + (right ? 1 : 0) : at[t];
      node[t] = of_tree[t][at[t]];
      more |= inner;
    }
  }
#pragma unroll
  for (int t = 0; t < kTrees; ++t) leaf[t] = __float_as_int(node[t].data);
}

// Adds trees of all outputs, one after the other: the bits of the CPU. A lane looks for the leaves of its row; then
// kLanes lanes are outputs, and the warp adds the leaves of its rows, 32 / kLanes of them at a time. Blocks along y
// share the outputs.
template <int kLanes, bool kStaged>
__device__ void add_trees(const Table& table, const SmallTrees& trees, const float* leaf_values, int n_outputs,
                          double* raw) {
  extern __shared__ double memory[];
  float* values = reinterpret_cast<float*>(memory);
  stage_rows(table, values);
  constexpr int kRows = 32 / kLanes;
  const uint64 row = blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x, first_row = row - threadIdx.x % 32;
  const int lane = threadIdx.x % 32, output = blockIdx.y * kLanes + lane % kLanes, in_turn = lane / kLanes;
  const bool is_output = output < n_outputs;
  double sums[kLanes];
#pragma unroll
  for (int r = 0; r < kLanes; ++r) {
    const uint64 of = first_row + r * kRows + in_turn;
    sums[r] = is_output && of < table.n_rows ? raw[of * n_outputs + output] : 0.0;
  }
  const int end = trees.first + trees.n_trees;
  for (int tree = trees.first; tree < end; tree += kTreesAtOnce) {
    int leaf[kTreesAtOnce] = {};
    const int n_here = min(kTreesAtOnce, end - tree);
    if (row < table.n_rows && n_here == kTreesAtOnce) {
      find_leaves_at_once<kStaged, kTreesAtOnce>(table, values, row, trees, tree, leaf);
    } else if (row < table.n_rows) {
#pragma unroll
      for (int t = 0; t < kTreesAtOnce; ++t)
        if (t < n_here) find_leaves_at_once<kStaged, 1>(table, values, row, trees, tree + t, leaf + t);
    }
    __syncwarp();
#pragma unroll
    for (int t = 0; t < kTreesAtOnce; ++t) {
      if (t >= n_here) break;
#pragma unroll
      for (int r = 0; r < kLanes; ++r) {
        const int begin = __shfl_sync(kAllLanes, leaf[t], r * kRows + in_turn);
        if (is_output) sums[r] += to_double(leaf_values[begin + output]);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kLanes; ++r) {
    const uint64 of = first_row + r * kRows + in_turn;
    if (is_output && of < table.n_rows) raw[of * n_outputs + output] = sums[r];
  }
}

template <int kLanes>
__device__ void add_trees(const Table& table, const SmallTrees& trees, const float* leaf_values, int n_outputs,
                          double* raw) {
  if (table.staged != 0)
    add_trees<kLanes, true>(table, trees, leaf_values, n_outputs, raw);
  else
    add_trees<kLanes, false>(table, trees, leaf_values, n_outputs, raw);
}

}  // namespace polyleaf

extern "C" __global__ void find_leaves32(polyleaf::Table table, polyleaf::Trees trees, int64* out) {
  polyleaf::find_leaves<float>(table, trees, out);
}

extern "C" __global__ void find_leaves64(polyleaf::Table table, polyleaf::Trees trees, int64* out) {
  polyleaf::find_leaves<double>(table, trees, out);
}

extern "C" __global__ void add_trees_by_8(polyleaf::Table table, polyleaf::SmallTrees trees, const float* values,
                                          int n_outputs, double* raw) {
  polyleaf::add_trees<8>(table, trees, values, n_outputs, raw);
}

extern "C" __global__ void add_trees_by_16(polyleaf::Table table, polyleaf::SmallTrees trees, const float* values,
                                           int n_outputs, double* raw) {
  polyleaf::add_trees<16>(table, trees, values, n_outputs, raw);
}

extern "C" __global__ void add_trees_by_32(polyleaf::Table table, polyleaf::SmallTrees trees, const float* values,
                                           int n_outputs, double* raw) {
  polyleaf::add_trees<32>(table, trees, values, n_outputs, raw);
}

// Adds the values of leaves to scores in units, tree after tree: the bits of the CPU. `leaves`: trees x rows. `lanes`:
// threads of a row, a power of two.
extern "C" __global__ void add_values(const int64* leaves, polyleaf::TreeValues of, uint64 n_rows, int n_outputs,
                                      int lanes, double* raw) {
  const uint64 at = blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x, row = at / lanes;
  if (row >= n_rows) return;
  double* scores = raw + row * n_outputs;
  for (int output = static_cast<int>(at % lanes); output < n_outputs; output += lanes) {
    double sum = scores[output];
    for (int tree = 0; tree < of.n_trees; ++tree) {
      const int in_tree = output - of.tree_output[of.first + tree];
      if (in_tree < 0 || in_tree >= of.tree_width[of.first + tree]) continue;
      sum += polyleaf::to_double(of.values[leaves[tree * n_rows + row] + in_tree]);
    }
    scores[output] = sum;
  }
}

// The same of sparse leaves, each value of an output of its own; a thread a row.
extern "C" __global__ void add_sparse_values(const int64* leaves, polyleaf::TreeValues of, uint64 n_rows, int n_outputs,
                                             double* raw) {
  const uint64 row = blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x;
  if (row >= n_rows) return;
  for (int tree = 0; tree < of.n_trees; ++tree) {
    const int64 begin = leaves[tree * n_rows + row];
    for (int i = 0; i < of.tree_width[of.first + tree]; ++i)
      raw[row * n_outputs + of.value_output[begin + i]] += polyleaf::to_double(of.values[begin + i]);
  }
}

// What the softmax predicts: the shares of e^score in each row, which so many lanes share.
extern "C" __global__ void softmax_shares(const double* raw, uint64 n_rows, int n_outputs, int lanes, double* out) {
  using namespace polyleaf;
  const uint64 at = blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x, row = at / lanes;
  const int lane = static_cast<int>(at % lanes);
  const double* x = raw + min(row, n_rows - 1) * n_outputs;  // lanes of no row take part, too
  double largest = x[0];
  for (int j = lane; j < n_outputs; j += lanes) largest = fmax(largest, x[j]);
  largest = warp_max(largest, lanes);
  double sum = 0;
  for (int j = lane; j < n_outputs; j += lanes) sum += exp(fmax(x[j] - largest, -700.0));
  const double inverse = 1.0 / warp_sum(sum, lanes);
  if (row >= n_rows) return;
  for (int j = lane; j < n_outputs; j += lanes) out[row * n_outputs + j] = exp(fmax(x[j] - largest, -700.0)) * inverse;
}
