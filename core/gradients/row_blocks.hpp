// Passes over rows x outputs, some rows at a time.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/threads.hpp"

namespace polyleaf {

// Runs body(begin, end) over blocks of rows that hold about as much as the second-level cache.
template <class Body>
void over_row_blocks(std::size_t n_rows, int n_outputs, int n_threads, Body&& body) {
  constexpr std::size_t kBlockCells = std::size_t{1} << 15;
  const std::size_t rows = std::max<std::size_t>(1, kBlockCells / static_cast<std::size_t>(n_outputs));
  parallel_for(n_threads, (n_rows + rows - 1) / rows,
               [&](std::size_t block, int) { body(block * rows, std::min(n_rows, (block + 1) * rows)); });
}

}  // namespace polyleaf
