#include "gradients/probabilities.hpp"

#include "gradients/row_blocks.hpp"
#include "kernels/gradient.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kStepsOfACell = 16;  // of a probability

int threads_for(std::size_t n_rows, int n_outputs, int n_threads) {
  return n_rows * static_cast<std::size_t>(n_outputs) * kStepsOfACell < kParallelWork ? 1 : n_threads;
}

}  // namespace

void softmax_probabilities(const double* raw, std::size_t n_rows, int n_outputs, double* out, int n_threads) {
  over_row_blocks(n_rows, n_outputs, threads_for(n_rows, n_outputs, n_threads),
                  [&](std::size_t begin, std::size_t end, int) {
                    gradient_kernels().softmax_shares(raw, begin, end, n_outputs, out);
                  });
}

void logistic_probabilities(const double* raw, std::size_t n_rows, int n_outputs, double* out, int n_threads) {
  const auto d = static_cast<std::size_t>(n_outputs);
  over_row_blocks(
      n_rows, n_outputs, threads_for(n_rows, n_outputs, n_threads),
      [&](std::size_t begin, std::size_t end, int) { gradient_kernels().sigmoids(raw, begin * d, end * d, out); });
}

}  // namespace polyleaf
