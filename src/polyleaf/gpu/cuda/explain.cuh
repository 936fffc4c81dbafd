// Shapley values of rows, in the steps and in the order of core/kernels/explain.cpp, which gives the bits of the CPU.
//
// A thread goes down the ways of a tree for a row, and writes what each feature on the way to each leaf weighs. Then a
// thread adds up what a feature gets for some outputs, leaf after leaf: all rows do the same, and each keeps to itself.
#pragma once

#include "common.cuh"
#include "rules/routing.hpp"

namespace polyleaf {

// A level of the way down, as a number: the step, and two bits.
constexpr uint32 kFulfils = 1;    // the row fulfils all splits by this feature down to here
constexpr uint32 kWentRight = 2;  // at the split above

__device__ inline uint64 number_of_thread() { return blockIdx.x * static_cast<uint64>(blockDim.x) + threadIdx.x; }

// The thread's own places in arrays whose neighbours are threads, or rows.
struct Walker {
  double* product;
  uint32* level;
  uint64 stride;
  double* weights;
  int64 first_slot;  // of the weights
  uint64 n_rows;
  uint64 row;
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

// Writes the weights of a batch's elements. kPoints: 0 where the number is known at run time only.
template <int kPoints, class Value>
__device__ void weigh_batch(const Table& table, const Ways& ways, const WayTree& tree, const WayBatch& batch,
                            const Walker& walker) {
  const int n = kPoints > 0 ? kPoints : tree.n_points;
  const double* unfulfilled = ways.unfulfilled + n * (n - 1) / 2;
  const double* tables = ways.tables + tree.table_begin;
  const WayElement* element = ways.elements + batch.element_begin;
  double* weights = walker.weights + (batch.element_begin - walker.first_slot) * walker.n_rows;
  const uint64 stride = walker.stride;
  double here[kPoints > 0 ? kPoints : 1];  // the last product, in registers
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
    for (int q = 0; q < n; ++q) {
      const double down_to_here = from[q * stride] * factor[q];
      product[q * stride] = down_to_here;
      if (kPoints > 0) here[q] = down_to_here;
    }
    *level = number << 2 | (right ? kWentRight : 0u) | (one ? kFulfils : 0u);
    for (int e = 0; e < step.n_elements; ++e, ++element) {
      const uint32 at = walker.level[element->depth * stride];
      const double* of = (at & kFulfils) != 0 ? tables + ((at >> 2) * 4ull + 3) * n : unfulfilled;
      double weight = (kPoints > 0 ? here[0] : product[0]) * of[0];
      for (int q = 1; q < n; ++q) weight += (kPoints > 0 ? here[q] : product[q * stride]) * of[q];
      weights[element->slot * walker.n_rows] = weight;
    }
  }
}

template <int kPoints, class Value>
__device__ void weigh_tree(const Table& table, const Ways& ways, const WayTree& tree, const Walker& walker) {
  for (int q = 0; q < tree.n_points; ++q) walker.product[q * walker.stride] = 1.0;  // nothing has been asked for
  for (int64 b = tree.batch_begin; b < tree.batch_end; ++b) {
    const WayBatch batch = ways.batches[b];
    weigh_batch<kPoints, Value>(table, ways, tree, batch, walker);
  }
}

// Blocks along x share the rows, along y the trees of the group.
template <class Value>
__device__ void weigh_leaves(const Table& table, const Ways& ways, const WayGroup& group, const WaySums& to) {
  Walker walker;
  walker.row = number_of_thread();
  if (walker.row >= to.n_rows) return;
  const uint64 thread = blockIdx.y * to.n_rows + walker.row;
  walker.product = to.product + thread;
  walker.level = to.level + thread;
  walker.stride = gridDim.y * to.n_rows;
  walker.weights = to.weights + walker.row;
  walker.first_slot = group.first_slot;
  walker.n_rows = to.n_rows;
  for (int t = group.tree_begin + static_cast<int>(blockIdx.y); t < group.tree_end; t += gridDim.y) {
    const WayTree tree = ways.trees[t];
    switch (tree.n_points) {
      case 1:
        weigh_tree<1, Value>(table, ways, tree, walker);
        break;
      case 2:
        weigh_tree<2, Value>(table, ways, tree, walker);
        break;
      case 3:
        weigh_tree<3, Value>(table, ways, tree, walker);
        break;
      case 4:
        weigh_tree<4, Value>(table, ways, tree, walker);
        break;
      case 5:
        weigh_tree<5, Value>(table, ways, tree, walker);
        break;
      default:
        weigh_tree<0, Value>(table, ways, tree, walker);
    }
  }
}

// The weights of a run, and the values that go to the thread's outputs [low, high).
struct RunPiece {
  const uint32* leaf_of_slot;
  const double* weights;  // neighbours are rows
  const double* values;   // of `low`, of the first leaf
  int n_slots;
  int together;  // values that lie side by side
  int low, high;
};

// kWhole: to all outputs of the thread.
template <bool kWhole>
__device__ inline void add_slots(const RunPiece& piece, uint64 n_rows, double (&sum)[kOutputsAtOnce]) {
#pragma unroll 4
  for (int slot = 0; slot < piece.n_slots; ++slot) {
    const double weight = piece.weights[slot * n_rows];
    const double* value = piece.values + piece.leaf_of_slot[slot] * piece.together;
    if (kWhole) {
#pragma unroll
      for (int k = 0; k < kOutputsAtOnce; ++k) sum[k] += weight * value[k];
    } else {
#pragma unroll
      for (int k = 0; k < kOutputsAtOnce; ++k)
        if (k >= piece.low && k < piece.high) sum[k] += weight * value[k - piece.low];
    }
  }
}

// Adds a run to the thread's outputs, which begin with `first`. Those of a tree may begin elsewhere: then they lie in
// two of its pieces.
__device__ inline void add_run(const Ways& ways, const WayRun& run, int first, const double* weights, uint64 n_rows,
                               double (&sum)[kOutputsAtOnce]) {
  const double* values = ways.values + ways.value_begin[run.first_leaf];
  const int shift = run.first_output - first;
  const int end = min(run.n_outputs, kOutputsAtOnce - shift);
  RunPiece piece;
  piece.leaf_of_slot = ways.leaf_of_slot + run.slot_begin;
  piece.weights = weights;
  piece.n_slots = static_cast<int>(run.slot_end - run.slot_begin);
  for (int k = max(0, -shift); k < end; k = piece.high - shift) {
    const int in_piece = k % ways.outputs_together, begin = k - in_piece;
    piece.together = min(ways.outputs_together, run.n_outputs - begin);
    piece.values = values + static_cast<int64>(begin) * run.n_leaves + in_piece;
    piece.low = k + shift;
    piece.high = min(begin + piece.together, end) + shift;
    if (piece.high - piece.low == kOutputsAtOnce)
      add_slots<true>(piece, n_rows, sum);
    else
      add_slots<false>(piece, n_rows, sum);
  }
}

// Blocks along x share the rows, along y the columns and a few outputs of each, whose sums stay in registers while all
// leaves of the group are gone through.
__device__ inline void add_dense(const Ways& ways, const WayGroup& group, const WaySums& to) {
  const uint64 row = number_of_thread();
  if (row >= to.n_rows) return;
  const int n_pieces = (ways.n_outputs + kOutputsAtOnce - 1) / kOutputsAtOnce;
  for (int at = static_cast<int>(blockIdx.y); at < ways.n_columns * n_pieces; at += gridDim.y) {
    const int column = at / n_pieces, first = at % n_pieces * kOutputsAtOnce;
    const int64 begin = group.first_run[column], end = group.first_run[ways.n_columns + column];
    if (begin == end) continue;
    const int n = min(kOutputsAtOnce, ways.n_outputs - first);
    double* sums = to.sums + (static_cast<uint64>(column) * ways.n_outputs + first) * to.n_rows + row;
    double sum[kOutputsAtOnce];
#pragma unroll
    for (int k = 0; k < kOutputsAtOnce; ++k) sum[k] = k < n ? sums[k * to.n_rows] : 0.0;
    for (int64 r = begin; r < end; ++r) {
      const WayRun run = ways.runs[r];
      add_run(ways, run, first, to.weights + (run.slot_begin - group.first_slot) * to.n_rows + row, to.n_rows, sum);
    }
#pragma unroll
    for (int k = 0; k < kOutputsAtOnce; ++k)
      if (k < n) sums[k * to.n_rows] = sum[k];
  }
}

// As above, for leaves that have a few outputs each: these are added where they belong.
__device__ inline void add_sparse(const Ways& ways, const WayGroup& group, const WaySums& to) {
  const uint64 row = number_of_thread();
  if (row >= to.n_rows) return;
  for (int column = static_cast<int>(blockIdx.y); column < ways.n_columns; column += gridDim.y) {
    double* sums = to.sums + static_cast<uint64>(column) * ways.n_outputs * to.n_rows + row;
    for (int64 r = group.first_run[column]; r < group.first_run[ways.n_columns + column]; ++r) {
      const WayRun run = ways.runs[r];
      for (int64 slot = run.slot_begin; slot < run.slot_end; ++slot) {
        const double weight = to.weights[(slot - group.first_slot) * to.n_rows + row];
        const int64* values = ways.value_begin + run.first_leaf + ways.leaf_of_slot[slot];
        for (int64 v = values[0]; v < values[1]; ++v) sums[ways.value_output[v] * to.n_rows] += weight * ways.values[v];
      }
    }
  }
}

__device__ inline void store(double value, double* out) { *out = value; }
__device__ inline void store(double value, float* out) { *out = to_float(value); }

// A thread a number of the result: from [column][output][row], in units, to [row][feature][output].
template <class Number>
__device__ void write_values(const double* sums, const WayTarget& target, Number* out) {
  const uint64 at = number_of_thread();
  const uint64 cells = static_cast<uint64>(target.n_features) * target.n_outputs;
  if (at >= target.n_rows * cells) return;
  const uint64 row = at / cells;
  const int cell = static_cast<int>(at % cells), k = cell % target.n_outputs;
  const int column = target.column_of_feature[cell / target.n_outputs];
  double value = 0.0;
  if (column >= 0) {
    const uint64 of_sums = static_cast<uint64>(column) * target.n_outputs + k;
    value = sums[of_sums * target.n_rows + row] * target.unit[k];
  }
  store(value, out + (at - k) + target.column_of_output[k]);
}

}  // namespace polyleaf

extern "C" __global__ void weigh_leaves32(polyleaf::Table table, polyleaf::Ways ways, polyleaf::WayGroup group,
                                          polyleaf::WaySums to) {
  polyleaf::weigh_leaves<float>(table, ways, group, to);
}

extern "C" __global__ void weigh_leaves64(polyleaf::Table table, polyleaf::Ways ways, polyleaf::WayGroup group,
                                          polyleaf::WaySums to) {
  polyleaf::weigh_leaves<double>(table, ways, group, to);
}

extern "C" __global__ void add_dense(polyleaf::Ways ways, polyleaf::WayGroup group, polyleaf::WaySums to) {
  polyleaf::add_dense(ways, group, to);
}

extern "C" __global__ void add_sparse(polyleaf::Ways ways, polyleaf::WayGroup group, polyleaf::WaySums to) {
  polyleaf::add_sparse(ways, group, to);
}

extern "C" __global__ void write_values32(const double* sums, polyleaf::WayTarget target, float* out) {
  polyleaf::write_values(sums, target, out);
}

extern "C" __global__ void write_values64(const double* sums, polyleaf::WayTarget target, double* out) {
  polyleaf::write_values(sums, target, out);
}
