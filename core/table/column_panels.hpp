// Columns of a table, read by several threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/buffer.hpp"
#include "base/matrix_view.hpp"
#include "base/threads.hpp"

namespace polyleaf {

// Scratch memory of a thread for the columns it reads at once: this much for each row, or in all where rows are few.
constexpr std::size_t kPanelRowBytes = 24;
constexpr std::size_t kPanelBytes = std::size_t{1} << 22;

// Columns that one thread reads from the table at once: neighbours share lines of memory where rows lie side by side.
struct Panel {
  std::size_t first;
  std::size_t count;
};

// Panels that fit the scratch memory of a thread, smaller ones towards the end so that no thread is left alone with
// much to do.
inline std::vector<Panel> cut_into_panels(std::size_t n_columns, std::size_t most, std::size_t n_threads) {
  std::vector<Panel> panels;
  for (std::size_t first = 0; first < n_columns; first += panels.back().count)
    panels.push_back({first, std::clamp<std::size_t>((n_columns - first) / (2 * n_threads), 1, most)});
  return panels;
}

// Calls visit(column, values, thread) with the values of each column, as the smallest floating-point type that holds
// them.
template <class Visit>
void each_column(const MatrixView& x, int n_threads, Visit&& visit) {
  const auto threads = static_cast<std::size_t>(std::max(n_threads, 1));
  const std::size_t n = x.n_rows;
  with_real(x.dtype, [&](auto zero) {
    using Value = decltype(zero);
    const std::size_t most = std::max(kPanelRowBytes, kPanelBytes / std::max<std::size_t>(n, 1)) / sizeof(Value);
    const std::vector<Panel> panels = cut_into_panels(x.n_columns, most, threads);
    std::vector<Buffer<Value>> values(threads);
    parallel_for(n_threads, panels.size(), [&](std::size_t at, int thread) {
      const Panel& panel = panels[at];
      Buffer<Value>& block = values[static_cast<std::size_t>(thread)];
      if (block.size() < panel.count * n) block = Buffer<Value>(panel.count * n);
      load_block(x, 0, n, panel.first, panel.count, block.data(), n);
      for (std::size_t c = 0; c < panel.count; ++c)
        visit(panel.first + c, static_cast<const Value*>(block.data() + c * n), thread);
    });
  });
}

}  // namespace polyleaf
