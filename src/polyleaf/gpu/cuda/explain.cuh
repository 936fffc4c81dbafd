// Shapley values of rows, a thread each: down the ways to all leaves, tree after tree, in the steps and in the order of
// core/kernels/explain.cpp. All rows go the same way, and each keeps to itself: the bits of the CPU.
#pragma once

#include "common.cuh"
#include "rules/routing.hpp"

namespace polyleaf {

// A level of the way down, as a number: the step, and two bits.
constexpr uint32 kFulfils = 1;    // the row fulfils all splits by this feature down to here
constexpr uint32 kWentRight = 2;  // at the split above

// The thread's own places in arrays whose neighbours are threads.
struct Walker {
  double* product;
  uint32* level;
  uint64 stride;
  uint64 row;
  uint64 n_rows;
  int first_output, end_output;
};

template <class Value>
__device__ inline bool goes_right(const Table& table, const Ways& ways, const WayStep& step, uint64 row) {
  const Value* cells = static_cast<const Value*>(table.cells);
  const double value = to_double(cells[step.column * table.column_stride + static_cast<int64>(row) * table.row_stride]);
  const bool missing_right = (step.sides & kMissingRight) != 0;
  if (step.n_words == 0) return goes_right(value, step.threshold, missing_right);
  const bool in_set = has_number(ways.category_bits + step.words_begin, step.n_words, value);
  return !category_goes_left(in_set, !missing_right);
}

// Adds what a leaf's values give to a feature, for the thread's outputs.
__device__ inline void add_leaf(const Ways& ways, const WayTree& tree, const WayBatch& batch, int64 leaf, double weight,
                                const Walker& walker, double* to) {
  if (ways.value_output != nullptr) {
    const int64 begin = ways.value_begin[batch.first_leaf + leaf], end = ways.value_begin[batch.first_leaf + leaf + 1];
    for (int64 v = begin; v < end; ++v) {
      const int output = static_cast<int>(ways.value_output[v]);
      if (output < walker.first_output || output >= walker.end_output) continue;
      to[output * walker.n_rows] += weight * ways.values[v];
    }
    return;
  }
  const double* values = ways.values + ways.value_begin[batch.first_leaf];
  const int first = max(walker.first_output - tree.first_output, 0);
  const int end = min(walker.end_output - tree.first_output, tree.n_outputs);
  for (int k = first; k < end; ++k) {
    const int piece = k / ways.outputs_together * ways.outputs_together;
    const int together = min(ways.outputs_together, tree.n_outputs - piece);
    const double value = values[piece * batch.n_leaves + leaf * together + (k - piece)];
    to[static_cast<uint64>(tree.first_output + k) * walker.n_rows] += weight * value;
  }
}

// kPoints: 0 where the number is known at run time only.
template <int kPoints, class Value>
__device__ void add_tree(const Table& table, const Ways& ways, const WayTree& tree, const Walker& walker,
                         double* sums) {
  const int n = kPoints > 0 ? kPoints : tree.n_points;
  const double* unfulfilled = ways.unfulfilled + n * (n - 1) / 2;
  const double* tables = ways.tables + tree.table_begin;
  const uint64 stride = walker.stride;
  for (int q = 0; q < n; ++q) walker.product[q * stride] = 1.0;  // at the root, nothing has been asked for
  for (int64 b = tree.batch_begin; b < tree.batch_end; ++b) {
    const WayBatch batch = ways.batches[b];
    const uint32* element = ways.element_depth + batch.element_begin;
    int64 leaf = 0;
    for (int64 i = batch.step_begin; i < batch.step_end; ++i) {
      const WayStep step = ways.steps[i];
      const uint32 number = static_cast<uint32>(i - tree.step_begin);
      uint32* level = walker.level + step.depth * stride;
      const bool to_the_right = (step.sides & kToTheRight) != 0;
      // The left child comes first, and what it finds holds for both.
      const bool right = to_the_right ? (*level & kWentRight) != 0 : goes_right<Value>(table, ways, step, walker.row);
      bool one = right == to_the_right;
      const double* factor = tables + number * 4ull * n;
      if (step.above > 0) {
        const bool before = (walker.level[step.above * stride] & kFulfils) != 0;
        one = one && before;
        factor += one ? 0 : before ? n : 2 * n;
      } else {
        factor += one ? 0 : n;
      }
      const double* from = walker.product + static_cast<uint64>(step.depth - 1) * n * stride;
      double* product = walker.product + static_cast<uint64>(step.depth) * n * stride;
      for (int q = 0; q < n; ++q) product[q * stride] = from[q * stride] * factor[q];
      *level = number << 2 | (right ? kWentRight : 0u) | (one ? kFulfils : 0u);
      if (step.n_elements == 0) continue;
      for (int e = 0; e < step.n_elements; ++e) {
        const uint32 at = walker.level[element[e] * stride];
        const double* of = (at & kFulfils) != 0 ? tables + ((at >> 2) * 4ull + 3) * n : unfulfilled;
        double weight = product[0] * of[0];
        for (int q = 1; q < n; ++q) weight += product[q * stride] * of[q];
        const int column = ways.steps[tree.step_begin + (at >> 2)].column;
        add_leaf(ways, tree, batch, leaf, weight, walker,
                 sums + static_cast<uint64>(column) * ways.n_outputs * walker.n_rows + walker.row);
      }
      element += step.n_elements;
      ++leaf;
    }
  }
}

// Blocks along x share the rows, along y the outputs: each of these goes all ways for itself.
template <class Value>
__device__ void explain_rows(const Table& table, const Ways& ways, const WaySums& to) {
  const uint64 row = blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x;
  if (row >= table.n_rows) return;
  const uint64 thread = blockIdx.y * table.n_rows + row;
  Walker walker;
  walker.product = to.product + thread;
  walker.level = to.level + thread;
  walker.stride = gridDim.y * table.n_rows;
  walker.row = row;
  walker.n_rows = table.n_rows;
  walker.first_output = static_cast<int>(blockIdx.y) * to.outputs;
  walker.end_output = min(walker.first_output + to.outputs, ways.n_outputs);
  for (int t = 0; t < ways.n_trees; ++t) {
    const WayTree tree = ways.trees[t];
    switch (tree.n_points) {
      case 1:
        add_tree<1, Value>(table, ways, tree, walker, to.sums);
        break;
      case 2:
        add_tree<2, Value>(table, ways, tree, walker, to.sums);
        break;
      case 3:
        add_tree<3, Value>(table, ways, tree, walker, to.sums);
        break;
      case 4:
        add_tree<4, Value>(table, ways, tree, walker, to.sums);
        break;
      default:
        add_tree<0, Value>(table, ways, tree, walker, to.sums);
    }
  }
}

__device__ inline void store(double value, double* out) { *out = value; }
__device__ inline void store(double value, float* out) { *out = to_float(value); }

// A thread a number of the result: from [column][output][row], in units, to [row][column][output].
template <class Number>
__device__ void write_values(const double* sums, const WayTarget& target, Number* out) {
  const uint64 at = blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x;
  const uint64 cells = static_cast<uint64>(target.n_columns) * target.n_outputs;
  if (at >= target.n_rows * cells) return;
  const uint64 row = at / cells, cell = at % cells;
  const int k = static_cast<int>(cell % target.n_outputs);
  Number* to = out + row * cells + (cell - k) + target.column_of_output[k];
  store(sums[cell * target.n_rows + row] * target.unit[k], to);
}

}  // namespace polyleaf

extern "C" __global__ void explain_rows32(polyleaf::Table table, polyleaf::Ways ways, polyleaf::WaySums to) {
  polyleaf::explain_rows<float>(table, ways, to);
}

extern "C" __global__ void explain_rows64(polyleaf::Table table, polyleaf::Ways ways, polyleaf::WaySums to) {
  polyleaf::explain_rows<double>(table, ways, to);
}

extern "C" __global__ void write_values32(const double* sums, polyleaf::WayTarget target, float* out) {
  polyleaf::write_values(sums, target, out);
}

extern "C" __global__ void write_values64(const double* sums, polyleaf::WayTarget target, double* out) {
  polyleaf::write_values(sums, target, out);
}
