// Leaves of the rows of a table, and raw scores from them.
#pragma once

#include "common.cuh"

namespace polyleaf {

// A node of a packed forest, 16 bytes. Inner: `data` is the threshold, or of a split by categories where its words
// begin and how many there are; `feature` has kGoesLeft set where missing values go left and kByCategories of a split
// by categories; `left` is counted within the forest. Leaf: `left` is -1 and `data` says where its values begin.
struct __align__(16) PackedNode {
  double data;
  int feature;
  int left;
};

constexpr int kGoesLeft = 1 << 30;
constexpr int kByCategories = 1 << 29;

template <class Value>
__device__ bool goes_left(const PackedNode& node, Value value, const uint32* category_bits) {
  const bool missing_left = (node.feature & kGoesLeft) != 0;
  if (isnan(value)) return missing_left;
  if ((node.feature & kByCategories) == 0) return static_cast<double>(value) <= node.data;
  const uint64 words = static_cast<uint64>(__double_as_longlong(node.data));
  const uint64 begin = words >> 16, n_words = words & 0xffff;
  // Whatever is no category of the set goes with missing values.
  if (!(value >= 0) || static_cast<double>(value) >= 32.0 * n_words || value != floor(value)) return missing_left;
  const uint32 category = static_cast<uint32>(value);
  const bool in_set = ((category_bits[begin + category / 32] >> (category % 32)) & 1u) != 0;
  return in_set != missing_left;
}

// A block takes blockDim.x rows, and all trees from blockIdx.y on in steps of gridDim.y. Where the rows' values fit
// shared memory
// (`staged`), they are read once, [feature][row]: no two lanes then want the same bank.
template <class Value>
__device__ void find_leaves(const Value* table, int64 row_stride, int64 column_stride, uint64 n_rows, int n_features,
                            int staged, const PackedNode* nodes, const int64* node_begin, int first_tree, int n_trees,
                            const uint32* category_bits, int64* out) {
  extern __shared__ double memory[];
  Value* values = reinterpret_cast<Value*>(memory);
  const uint64 first_row = blockIdx.x * static_cast<uint64>(blockDim.x), row = first_row + threadIdx.x;
  if (staged != 0) {
    // Neighbouring threads read neighbouring columns: rows lie side by side in most tables.
    const int n_block = static_cast<int>(min(static_cast<uint64>(blockDim.x), n_rows - first_row));
    for (int i = threadIdx.x; i < n_block * n_features; i += blockDim.x) {
      const int r = i / n_features, f = i % n_features;
      values[f * blockDim.x + r] = table[static_cast<int64>(first_row + r) * row_stride + f * column_stride];
    }
    __syncthreads();
  }
  if (row >= n_rows) return;
  const Value* own = table + static_cast<int64>(row) * row_stride;
  for (int tree = blockIdx.y; tree < n_trees; tree += gridDim.y) {
    PackedNode node = nodes[node_begin[first_tree + tree]];
    while (node.left >= 0) {
      const int feature = node.feature & (kByCategories - 1);
      const Value value = staged != 0 ? values[feature * blockDim.x + threadIdx.x] : own[feature * column_stride];
      node = nodes[node.left + (goes_left(node, value, category_bits) ? 0 : 1)];
    }
    out[tree * n_rows + row] = __double_as_longlong(node.data);
  }
}

}  // namespace polyleaf

extern "C" __global__ void find_leaves32(const float* table, int64 row_stride, int64 column_stride, uint64 n_rows,
                                         int n_features, int staged, const polyleaf::PackedNode* nodes,
                                         const int64* node_begin, int first_tree, int n_trees,
                                         const uint32* category_bits, int64* out) {
  polyleaf::find_leaves(table, row_stride, column_stride, n_rows, n_features, staged, nodes, node_begin, first_tree,
                        n_trees, category_bits, out);
}

extern "C" __global__ void find_leaves64(const double* table, int64 row_stride, int64 column_stride, uint64 n_rows,
                                         int n_features, int staged, const polyleaf::PackedNode* nodes,
                                         const int64* node_begin, int first_tree, int n_trees,
                                         const uint32* category_bits, int64* out) {
  polyleaf::find_leaves(table, row_stride, column_stride, n_rows, n_features, staged, nodes, node_begin, first_tree,
                        n_trees, category_bits, out);
}

// Adds the values of leaves to scores in units, tree after tree: the bits of the CPU. `lanes`: threads of a row, a
// power of two.
extern "C" __global__ void add_values(const int64* leaves, const float* values, const int* tree_output,
                                      const int* tree_width, int first_tree, int n_trees, uint64 n_rows, int n_outputs,
                                      int lanes, double* raw) {
  const uint64 at = blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x, row = at / lanes;
  if (row >= n_rows) return;
  double* scores = raw + row * n_outputs;
  for (int output = static_cast<int>(at % lanes); output < n_outputs; output += lanes) {
    double sum = scores[output];
    for (int tree = 0; tree < n_trees; ++tree) {
      const int in_tree = output - tree_output[first_tree + tree];
      if (in_tree < 0 || in_tree >= tree_width[first_tree + tree]) continue;
      sum += static_cast<double>(values[leaves[tree * n_rows + row] + in_tree]);
    }
    scores[output] = sum;
  }
}

// The same of sparse leaves, each value of an output of its own; a thread a row.
extern "C" __global__ void add_sparse_values(const int64* leaves, const float* values, const int* value_output,
                                             const int* tree_width, int first_tree, int n_trees, uint64 n_rows,
                                             int n_outputs, double* raw) {
  const uint64 row = blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x;
  if (row >= n_rows) return;
  for (int tree = 0; tree < n_trees; ++tree) {
    const int64 begin = leaves[tree * n_rows + row];
    for (int i = 0; i < tree_width[first_tree + tree]; ++i)
      raw[row * n_outputs + value_output[begin + i]] += static_cast<double>(values[begin + i]);
  }
}
