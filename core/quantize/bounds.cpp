#include "quantize/bounds.hpp"

#include <algorithm>
#include <limits>

#include "base/threads.hpp"
#include "kernels/sum.hpp"

namespace polyleaf {

std::vector<double> largest_magnitudes(const WeightedRows& rows, std::size_t n_rows, int n_threads) {
  constexpr std::size_t kBlockCells = std::size_t{1} << 16;
  const auto n = static_cast<std::size_t>(rows.n);
  const std::size_t block_rows = std::max<std::size_t>(kBlockCells / n, 64);
  const std::size_t n_blocks = (n_rows + block_rows - 1) / block_rows;
  const int threads = n_rows * n < kParallelWork ? 1 : n_threads;
  std::vector<std::vector<double>> of_thread(static_cast<std::size_t>(std::max(threads, 1)),
                                             std::vector<double>(n, 0.0));
  parallel_for(threads, n_blocks, [&](std::size_t block, int thread) {
    sum_kernels().largest_magnitudes(rows, block * block_rows, std::min(n_rows, (block + 1) * block_rows),
                                     of_thread[static_cast<std::size_t>(thread)].data());
  });
  for (const std::vector<double>& other : of_thread)
    for (std::size_t j = 0; j < n; ++j) of_thread[0][j] = std::max(of_thread[0][j], other[j]);
  return of_thread[0];
}

bool span_widely(const double* weight, std::size_t n_rows, const Shard& shard) {
  double least = std::numeric_limits<double>::infinity(), most = 0.0;
  for (std::size_t row = 0; row < n_rows; ++row) {
    if (weight[row] > 0) least = std::min(least, weight[row]);
    most = std::max(most, weight[row]);
  }
  return shard.largest(most) > 0x1p30 * shard.smallest(least);
}

GradientBounds bounds_of(const Gradients& in, const Shard& shard, int n_threads) {
  GradientBounds out;
  const auto d = static_cast<std::size_t>(in.n_outputs);
  if (in.weight != nullptr) {
    out.weight = 0.0;
    for (std::size_t row = 0; row < in.n_rows; ++row) out.weight = std::max(out.weight, in.weight[row]);
    out.weight = shard.largest(out.weight);
    out.wide = span_widely(in.weight, in.n_rows, shard);
  }
  if (in.hessian == nullptr && in.hessian_rule != Term::kItself) {
    out.gradient.assign(d, out.weight);
    out.hessian.assign(d, out.weight);
    return out;
  }
  if (in.made != nullptr)
    out.gradient = in.made->largest_gradient;
  else
    out.gradient = largest_magnitudes({in.gradient, in.gradient_stride, in.weight, in.n_outputs}, in.n_rows, n_threads);
  if (in.made != nullptr)
    out.hessian = in.made->largest_hessian;
  else if (in.hessian != nullptr)
    out.hessian = largest_magnitudes({in.hessian, in.hessian_stride, in.weight, in.n_outputs}, in.n_rows, n_threads);
  shard.largest(out.gradient, out.hessian);
  return out;
}

}  // namespace polyleaf
