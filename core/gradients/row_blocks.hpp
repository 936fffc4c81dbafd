// Passes over rows x outputs, some rows at a time.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/threads.hpp"

namespace polyleaf {

// What a block of rows holds at most, unless a single row holds more: about as much as the second-level cache.
constexpr std::size_t kBlockCells = std::size_t{1} << 15;

inline std::size_t rows_of_block(int n_outputs) {
  return std::max<std::size_t>(1, kBlockCells / static_cast<std::size_t>(n_outputs));
}

// With fewer cells, each of which may take an exponential, it is not worth waking threads.
constexpr std::size_t kParallelCells = kParallelWork / 16;

// Runs body(begin, end, thread) over blocks of rows.
template <class Body>
void over_row_blocks(std::size_t n_rows, int n_outputs, int n_threads, Body&& body) {
  const std::size_t rows = rows_of_block(n_outputs);
  if (n_rows * static_cast<std::size_t>(n_outputs) < kParallelCells) n_threads = 1;
  parallel_for(n_threads, (n_rows + rows - 1) / rows, [&](std::size_t block, int thread) {
    body(block * rows, std::min(n_rows, (block + 1) * rows), thread);
  });
}

}  // namespace polyleaf
