// Which rows are in which leaf of a tree whose splits stand.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/threads.hpp"
#include "growth/contract.hpp"
#include "growth/grown_tree.hpp"

namespace polyleaf {

// Row numbers, those of a leaf side by side, and where each leaf has them.
struct RowsInLeaves {
  const std::uint32_t* rows = nullptr;
  std::vector<LeafRows> leaves;
};

// Some rows of a leaf, as positions in the array of row numbers.
struct RowChunk {
  std::size_t leaf;
  std::size_t begin;
  std::size_t end;
};

// The rows of the leaves, leaf after leaf, in chunks of this many.
constexpr std::size_t kLeafChunkRows = 1024;
std::vector<RowChunk> row_chunks(const std::vector<LeafRows>& leaves);

// Calls visit(row, leaf) for the rows that the leaves do not hold: those outside of a sample.
template <class Visit>
void each_outside_sample(const GrowTask& task, int n_threads, const GrownTree& tree, Visit&& visit) {
  if (task.sample.rows == nullptr || task.sample.all_rows_in_leaves) return;
  const BinnedMatrix& matrix = *task.matrix;
  std::vector<std::uint8_t> sampled(matrix.n_rows, 0);
  for (std::size_t i = 0; i < task.sample.n_rows; ++i) sampled[task.sample.rows[i]] = 1;
  parallel_for(n_threads, (matrix.n_rows + kLeafChunkRows - 1) / kLeafChunkRows, [&](std::size_t chunk, int) {
    const std::size_t end = std::min(matrix.n_rows, (chunk + 1) * kLeafChunkRows);
    for (std::size_t row = chunk * kLeafChunkRows; row < end; ++row)
      if (sampled[row] == 0) visit(row, find_leaf(matrix, row, tree));
  });
}

// Writes the leaf of each row where the task asks for it, those outside of the sample included.
void write_leaves(const GrowTask& task, int n_threads, const RowsInLeaves& places, const GrownTree& tree);

}  // namespace polyleaf
