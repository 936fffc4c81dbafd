#include "gradients/losses.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/threads.hpp"
#include "kernels/gradient.hpp"
#include "kernels/leaf.hpp"
#include "rules/curvature.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kBlockCells = std::size_t{1} << 15;
constexpr std::size_t kNearCells = std::size_t{1}
                                   << 10;  // what the first-level cache holds besides the values of leaves
constexpr std::size_t kStepsOfACell = 16;  // of a probability

// Runs body(begin, end) over blocks of rows of about kBlockCells cells.
template <class Body>
void over_rows(std::size_t n_rows, int n_outputs, int n_threads, Body&& body) {
  const std::size_t rows = std::max<std::size_t>(1, kBlockCells / static_cast<std::size_t>(n_outputs));
  parallel_for(n_threads, (n_rows + rows - 1) / rows,
               [&](std::size_t block, int) { body(block * rows, std::min(n_rows, (block + 1) * rows)); });
}

// Runs body(begin, end) on a few rows at a time, to which a tree is added first: they then are in the cache.
template <class Body>
void after_tree(const LeafValues& tree, std::size_t begin, std::size_t end, int n_outputs, double* raw, Body&& body) {
  if (tree.leaf == nullptr) return body(begin, end);
  const std::size_t step = std::max<std::size_t>(1, kNearCells / static_cast<std::size_t>(n_outputs));
  for (std::size_t row = begin; row < end; row += step) {
    const std::size_t last = std::min(end, row + step);
    leaf_kernels().add_leaves(tree.leaf, tree.values, tree.unit, row, last, n_outputs, raw);
    body(row, last);
  }
}

void mix(const RowMixtures& m, const float* values, std::size_t stride, std::size_t begin, std::size_t end,
         int n_outputs) {
  gradient_kernels().project(values, stride, begin, end, n_outputs, m.columns, m.column_stride, m.n_columns, m.out);
  if (m.share != nullptr)
    gradient_kernels().weighted_sums(values, stride, begin, end, n_outputs, m.share, m.term, m.sums);
}

// Adds the tree, has body(begin, end) make the gradients, and makes mixtures of them.
template <class Body>
void pass_over(const OnTheWay& also, double* raw, const float* gradient, std::size_t n_rows, int n_outputs,
               int n_threads, Body&& body) {
  over_rows(n_rows, n_outputs, n_threads, [&](std::size_t begin, std::size_t end) {
    after_tree(also.tree, begin, end, n_outputs, raw, body);
    if (also.mixtures.columns != nullptr)
      mix(also.mixtures, gradient, static_cast<std::size_t>(n_outputs), begin, end, n_outputs);
  });
}

}  // namespace

void add_leaf_values(const LeafValues& tree, std::size_t n_rows, int n_outputs, double* raw, int n_threads) {
  over_rows(n_rows, n_outputs, n_threads, [&](std::size_t begin, std::size_t end) {
    after_tree(tree, begin, end, n_outputs, raw, [](std::size_t, std::size_t) {});
  });
}

void mix_rows(const RowMixtures& mixtures, const float* values, std::size_t stride, std::size_t n_rows, int n_outputs,
              int n_threads) {
  const std::size_t n_cells = n_rows * static_cast<std::size_t>(n_outputs);
  over_rows(n_rows, n_outputs, n_cells < kParallelWork ? 1 : n_threads,
            [&](std::size_t begin, std::size_t end) { mix(mixtures, values, stride, begin, end, n_outputs); });
}

void squared_error_gradients(const OnTheWay& also, double* raw, const double* y, const double* unit, std::size_t n_rows,
                             int n_outputs, float* gradient, int n_threads) {
  const auto d = static_cast<std::size_t>(n_outputs);
  std::vector<double> inverse(d);  // units are powers of two: scaling first is exact and cannot overflow
  for (std::size_t j = 0; j < d; ++j) inverse[j] = 1.0 / unit[j];
  pass_over(also, raw, gradient, n_rows, n_outputs, n_threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row)
      for (std::size_t j = 0; j < d; ++j)
        gradient[row * d + j] = static_cast<float>(raw[row * d + j] * inverse[j] - y[row * d + j] * inverse[j]);
  });
}

void softmax_gradients(const OnTheWay& also, double* raw, const std::int32_t* label, Term curvature, std::size_t n_rows,
                       int n_outputs, float* gradient, float* hessian, int n_threads) {
  pass_over(also, raw, gradient, n_rows, n_outputs, n_threads, [&](std::size_t begin, std::size_t end) {
    gradient_kernels().softmax(raw, label, curvature, begin, end, n_outputs, gradient, hessian);
  });
}

void logistic_gradients(const OnTheWay& also, double* raw, const double* y, std::size_t n_rows, int n_outputs,
                        float* gradient, float* hessian, int n_threads) {
  const auto d = static_cast<std::size_t>(n_outputs);
  pass_over(also, raw, gradient, n_rows, n_outputs, n_threads, [&](std::size_t begin, std::size_t end) {
    gradient_kernels().logistic(raw, y, begin * d, end * d, gradient, hessian);
  });
}

void softmax_probabilities(const double* raw, std::size_t n_rows, int n_outputs, double* out, int n_threads) {
  if (n_rows * static_cast<std::size_t>(n_outputs) * kStepsOfACell < kParallelWork) n_threads = 1;
  over_rows(n_rows, n_outputs, n_threads, [&](std::size_t begin, std::size_t end) {
    gradient_kernels().softmax_shares(raw, begin, end, n_outputs, out);
  });
}

void logistic_probabilities(const double* raw, std::size_t n_rows, int n_outputs, double* out, int n_threads) {
  const auto d = static_cast<std::size_t>(n_outputs);
  if (n_rows * d * kStepsOfACell < kParallelWork) n_threads = 1;
  over_rows(n_rows, n_outputs, n_threads,
            [&](std::size_t begin, std::size_t end) { gradient_kernels().sigmoids(raw, begin * d, end * d, out); });
}

void clipped_squared_error_gradients(const double* raw, const double* y, std::size_t n_rows, int n_outputs,
                                     float* gradient, int n_threads) {
  const auto d = static_cast<std::size_t>(n_outputs);
  over_rows(n_rows, n_outputs, n_threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin * d; i < end * d; ++i)
      gradient[i] = static_cast<float>(y[i] > 0 ? -std::max(1.0 - raw[i], 0.0) : std::max(raw[i], 0.0));
  });
}

void pinball_gradients(const double* raw, const double* y, std::size_t n_targets, const std::int32_t* column,
                       const double* above, const double* below, std::size_t n_rows, int n_outputs, float* gradient,
                       int n_threads) {
  const auto d = static_cast<std::size_t>(n_outputs);
  over_rows(n_rows, n_outputs, n_threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row)
      for (std::size_t j = 0; j < d; ++j) {
        const double target = y[row * n_targets + static_cast<std::size_t>(column[j])];
        const double score = raw[row * d + j];
        const double value = score > target ? above[j] : score < target ? -below[j] : 0.0;
        gradient[row * d + j] = static_cast<float>(value);
      }
  });
}

void huber_gradients(const double* raw, const double* y, const double* unit, const double* factor, double delta,
                     double largest, std::size_t n_rows, int n_outputs, float* gradient, float* hessian,
                     int n_threads) {
  const auto d = static_cast<std::size_t>(n_outputs);
  over_rows(n_rows, n_outputs, n_threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row)
      for (std::size_t j = 0; j < d; ++j) {
        const std::size_t at = row * d + j;
        const double residual = raw[at] - y[at];
        const double clipped = std::clamp(residual, -delta, delta);
        const double curvature = residual == clipped ? 1.0 : clipped / residual;
        gradient[at] = static_cast<float>(clipped / unit[j] * factor[j]);
        hessian[at] = static_cast<float>(std::min(curvature * factor[j], largest));
      }
  });
}

void log_link_gradients(const double* raw, const double* y, const double* log_mean, double power, std::size_t n_rows,
                        int n_outputs, float* gradient, float* hessian, int n_threads) {
  // Factors of e^50 between a prediction and the mean, or e^80 between it and its target, are as good as more.
  constexpr double kFarFromMean = 50;
  constexpr double kFarFromTarget = 80;
  const auto d = static_cast<std::size_t>(n_outputs);
  over_rows(n_rows, n_outputs, n_threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row)
      for (std::size_t j = 0; j < d; ++j) {
        const std::size_t at = row * d + j;
        const double score = std::clamp(raw[at] - log_mean[j], -kFarFromMean, kFarFromMean);
        // The derivative is mean - y, divided by mean^(power - 1): `up` minus `down`.
        const double up = std::exp((2 - power) * score);
        if (!(y[at] > 0)) {
          gradient[at] = static_cast<float>(up);
          hessian[at] = static_cast<float>((2 - power) * up);
          continue;
        }
        const double step = std::min(std::log(y[at]) - log_mean[j] - score, kFarFromTarget);
        const double difference = up * std::expm1(step);
        const double exact = (2 - power) * up + (power - 1) * (up + difference);
        gradient[at] = static_cast<float>(-difference);
        hessian[at] = static_cast<float>(std::max(exact, step != 0 ? difference / step : up));
      }
  });
}

}  // namespace polyleaf
