#include "predict/raw_scores.hpp"

#include <algorithm>

#include "base/threads.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kBlockCells = std::size_t{1} << 14;

// Calls body(row) for each row.
template <class Body>
void each_row(std::size_t n_rows, std::size_t n_outputs, int n_threads, const Body& body) {
  const std::size_t size = std::max<std::size_t>(1, kBlockCells / std::max<std::size_t>(1, n_outputs));
  parallel_for(n_rows * n_outputs < kParallelGathers ? 1 : n_threads, (n_rows + size - 1) / size,
               [&](std::size_t block, int) {
                 const std::size_t end = std::min(n_rows, (block + 1) * size);
                 for (std::size_t row = block * size; row < end; ++row) body(row);
               });
}

}  // namespace

void start_scores(const double* start, std::size_t n_rows, std::size_t n_outputs, int n_threads, double* raw) {
  each_row(n_rows, n_outputs, n_threads,
           [=](std::size_t row) { std::copy_n(start, n_outputs, raw + row * n_outputs); });
}

void scale_scores(const double* unit, std::size_t n_rows, std::size_t n_outputs, int n_threads, double* raw) {
  each_row(n_rows, n_outputs, n_threads, [=](std::size_t row) {
    for (std::size_t j = 0; j < n_outputs; ++j) raw[row * n_outputs + j] *= unit[j];
  });
}

}  // namespace polyleaf
