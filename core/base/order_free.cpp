#include "base/order_free.hpp"

#include <algorithm>
#include <cmath>

#include "base/threads.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kBlockCells = std::size_t{1} << 14;

// Calls visit(row's numbers, its weights or null, its one weight) for rows [begin, end) that have any weight.
template <class Number, class Visit>
void each_row(const WeightedMatrix<Number>& m, std::size_t begin, std::size_t end, Visit&& visit) {
  for (std::size_t row = begin; row < end; ++row) {
    const bool of_cells = m.weight != nullptr && m.weight_stride > 0;
    const double one = m.weight != nullptr && !of_cells ? m.weight[row] : 1.0;
    if (one == 0.0) continue;
    visit(m.values + row * m.stride, of_cells ? m.weight + row * m.weight_stride : nullptr, one);
  }
}

template <bool Squares, class Number>
inline double term(const Number* x, const double* weights, double weight, std::size_t j) {
  const auto value = static_cast<double>(x[j]);
  return (weights != nullptr ? weights[j] : weight) * (Squares ? value * value : value);
}

template <bool Squares, class Number>
std::vector<double> sums_of(const WeightedMatrix<Number>& m, int n_threads, const Shard& shard) {
  const std::size_t d = m.n_columns;
  const std::size_t block_rows = std::max<std::size_t>(kBlockCells / d, 1);
  const std::size_t n_blocks = (m.n_rows + block_rows - 1) / block_rows;
  const int threads = m.n_rows * d < kParallelWork ? 1 : std::max(n_threads, 1);
  const auto over_rows = [&](auto&& visit) {  // visit(thread, numbers, weights, weight)
    parallel_for(threads, n_blocks, [&](std::size_t block, int thread) {
      each_row(m, block * block_rows, std::min(m.n_rows, (block + 1) * block_rows),
               [&](const Number* x, const double* weights, double weight) {
                 visit(static_cast<std::size_t>(thread), x, weights, weight);
               });
    });
  };
  const auto n_parts = static_cast<std::size_t>(threads);
  std::vector<std::vector<double>> largest(n_parts, std::vector<double>(d, 0.0));
  over_rows([&](std::size_t part, const Number* x, const double* weights, double weight) {
    double* __restrict most = largest[part].data();
    for (std::size_t j = 0; j < d; ++j) {
      const double magnitude = std::fabs(term<Squares>(x, weights, weight, j));
      most[j] = magnitude > most[j] ? magnitude : most[j];
    }
  });
  for (const std::vector<double>& other : largest)
    for (std::size_t j = 0; j < d; ++j) largest[0][j] = std::max(largest[0][j], other[j]);
  shard.largest(largest[0]);
  const SumGrids grids(largest[0], shard.add(m.n_rows));
  std::vector<std::vector<double>> coarse(n_parts, std::vector<double>(d, 0.0)), fine = coarse, plain = coarse;
  over_rows([&](std::size_t part, const Number* x, const double* weights, double weight) {
    double* __restrict high = coarse[part].data();
    double* __restrict low = fine[part].data();
    double* __restrict sum = plain[part].data();
    for (std::size_t j = 0; j < d; ++j) {
      const double one = term<Squares>(x, weights, weight, j);
      add_exactly(one, grids.coarse[j], grids.fine[j], high[j], low[j]);
      sum[j] += one;
    }
  });
  std::vector<double> together(3 * d, 0.0);  // one exchange
  for (std::size_t part = 0; part < n_parts; ++part)
    for (std::size_t j = 0; j < d; ++j) {
      together[j] += coarse[part][j];
      together[d + j] += fine[part][j];
      together[2 * d + j] += plain[part][j];
    }
  shard.add(together);
  std::vector<double> out;
  for (std::size_t j = 0; j < d; ++j)  // what is not finite is so in any order
    out.push_back(std::isfinite(together[2 * d + j]) ? together[j] + together[d + j] : together[2 * d + j]);
  return out;
}

// A power of two near a number: a division by it changes no digit.
double power_of_two(double number) {
  int exponent = 0;
  if (std::isfinite(number)) std::frexp(number, &exponent);
  return std::ldexp(1.0, std::clamp(exponent, -1000, 1000));
}

// The weights over a power of two near the largest, row after row.
std::vector<double> weight_shares(const WeightedMatrix<double>& m, const Shard& shard) {
  const std::size_t n = m.n_rows * std::max<std::size_t>(m.weight_stride, 1);
  double largest = 0.0;
  for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, m.weight[i]);
  const double size = power_of_two(shard.largest(largest));
  std::vector<double> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = m.weight[i] / size;
  return out;
}

}  // namespace

std::vector<double> column_means(const WeightedMatrix<double>& m, const Shard& shard) {
  const std::size_t n = m.n_rows, d = m.n_columns;
  std::vector<double> size(d, 0.0);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < d; ++j) size[j] = std::max(size[j], std::fabs(m.values[i * m.stride + j]));
  shard.largest(size);
  for (double& one : size) one = power_of_two(one);
  std::vector<double> values(n * d), weights;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < d; ++j) values[i * d + j] = m.values[i * m.stride + j] / size[j];
  WeightedMatrix<double> shares{values.data(), d, n, d, nullptr, 0};
  std::vector<double> whole(1, static_cast<double>(shard.add(n)));
  if (m.weight != nullptr) {
    weights = weight_shares(m, shard);
    shares.weight = weights.data();
    shares.weight_stride = m.weight_stride;
    const std::size_t width = m.weight_stride == 0 ? 1 : d;
    whole = column_sums(WeightedMatrix<double>{weights.data(), width, n, width, nullptr, 0}, false, 1, shard);
  }
  std::vector<double> means = column_sums(shares, false, 1, shard);
  for (std::size_t j = 0; j < d; ++j) {
    const double of_column = whole[whole.size() == 1 ? 0 : j];
    means[j] = means[j] / (of_column > 0 ? of_column : 1.0) * size[j];
  }
  return means;
}

std::vector<double> column_sums(const WeightedMatrix<float>& matrix, bool squares, int n_threads, const Shard& shard) {
  return squares ? sums_of<true>(matrix, n_threads, shard) : sums_of<false>(matrix, n_threads, shard);
}

std::vector<double> column_sums(const WeightedMatrix<double>& matrix, bool squares, int n_threads, const Shard& shard) {
  return squares ? sums_of<true>(matrix, n_threads, shard) : sums_of<false>(matrix, n_threads, shard);
}

std::vector<double> group_sums(const double* values, const std::int32_t* group, std::size_t n, std::size_t n_groups,
                               const Shard& shard) {
  double largest = values == nullptr ? 1.0 : 0.0;
  for (std::size_t i = 0; values != nullptr && i < n; ++i) largest = std::max(largest, std::fabs(values[i]));
  const SumGrid grid = sum_grid(shard.largest(largest), static_cast<double>(shard.add(n)));
  std::vector<double> coarse(n_groups, 0.0), fine(n_groups, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(group[i]);
    add_exactly(values == nullptr ? 1.0 : values[i], grid.coarse, grid.fine, coarse[at], fine[at]);
  }
  shard.add(coarse, fine);
  for (std::size_t g = 0; g < n_groups; ++g) coarse[g] += fine[g];
  return coarse;
}

}  // namespace polyleaf
