#include "losses.hpp"

#include <algorithm>
#include <vector>

#include "threads.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kBlockCells = std::size_t{1} << 14;

// Runs body(begin, end) over blocks of rows of about kBlockCells cells.
template <class Body>
void over_rows(std::size_t n_rows, int n_outputs, int n_threads, Body&& body) {
  const std::size_t rows = std::max<std::size_t>(1, kBlockCells / static_cast<std::size_t>(n_outputs));
  parallel_for(n_threads, (n_rows + rows - 1) / rows,
               [&](std::size_t block, int) { body(block * rows, std::min(n_rows, (block + 1) * rows)); });
}

}  // namespace

void squared_error_gradients(const double* raw, const double* y, const double* unit, std::size_t n_rows, int n_outputs,
                             float* gradient, int n_threads) {
  const auto d = static_cast<std::size_t>(n_outputs);
  std::vector<double> inverse(d);  // units are powers of two: scaling first is exact and cannot overflow
  for (std::size_t j = 0; j < d; ++j) inverse[j] = 1.0 / unit[j];
  over_rows(n_rows, n_outputs, n_threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row)
      for (std::size_t j = 0; j < d; ++j)
        gradient[row * d + j] = static_cast<float>(raw[row * d + j] * inverse[j] - y[row * d + j] * inverse[j]);
  });
}

void softmax_gradients(const double* raw, const std::int32_t* label, Term curvature, std::size_t n_rows, int n_outputs,
                       float* gradient, float* hessian, int n_threads) {
  over_rows(n_rows, n_outputs, n_threads, [&](std::size_t begin, std::size_t end) {
    kernels().softmax(raw, label, curvature, begin, end, n_outputs, gradient, hessian);
  });
}

void logistic_gradients(const double* raw, const double* y, std::size_t n_rows, int n_outputs, float* gradient,
                        float* hessian, int n_threads) {
  const auto d = static_cast<std::size_t>(n_outputs);
  over_rows(n_rows, n_outputs, n_threads, [&](std::size_t begin, std::size_t end) {
    kernels().logistic(raw, y, begin * d, end * d, gradient, hessian);
  });
}

void clipped_squared_error_gradients(const double* raw, const double* y, std::size_t n_rows, int n_outputs,
                                     float* gradient, int n_threads) {
  const auto d = static_cast<std::size_t>(n_outputs);
  over_rows(n_rows, n_outputs, n_threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin * d; i < end * d; ++i)
      gradient[i] = static_cast<float>(y[i] > 0 ? -std::max(1.0 - raw[i], 0.0) : std::max(raw[i], 0.0));
  });
}

}  // namespace polyleaf
