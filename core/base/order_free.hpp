// Sums of float64 numbers that do not depend on their order (rules/exact_sum.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/shard.hpp"
#include "rules/exact_sum.hpp"

namespace polyleaf {

// Of numbers term(0), ..., term(n - 1), and of those that other shards have; `n_all`: how many there are in all.
template <class Term>
double order_free_sum(std::size_t n, Term&& term, const Shard& shard, std::size_t n_all) {
  double largest = 0.0;
  for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(term(i)));
  const SumGrid grid = sum_grid(shard.largest(largest), static_cast<double>(n_all));
  ExactSum sum;
  for (std::size_t i = 0; i < n; ++i) sum.add(term(i), grid);
  std::vector<double> parts{sum.coarse, sum.fine};
  shard.add(parts);
  return ExactSum{parts[0], parts[1]}.value();
}

template <class Term>
double order_free_sum(std::size_t n, Term&& term) {
  return order_free_sum(n, term, Shard(), n);
}

// A matrix of numbers, and the weights of its rows or, with as many columns, of its cells; null: 1. Rows are `stride`
// numbers apart.
template <class Number>
struct WeightedMatrix {
  const Number* values;
  std::size_t stride;
  std::size_t n_rows;
  std::size_t n_columns;
  const double* weight;
  std::size_t weight_stride;  // 0: one of a row
};

// Per column: the weighted sum of its numbers, or of their squares.
std::vector<double> column_sums(const WeightedMatrix<float>& matrix, bool squares, int n_threads, const Shard& shard);
std::vector<double> column_sums(const WeightedMatrix<double>& matrix, bool squares, int n_threads, const Shard& shard);

// Per column: the weighted mean of its numbers; 0 without any weight. Powers of two are divided out of numbers and
// weights first, so that sums stay within float64 whatever the size of these.
std::vector<double> column_means(const WeightedMatrix<double>& matrix, const Shard& shard);

// Per group: the sum of its numbers; null: of ones. `group` is that of each number.
std::vector<double> group_sums(const double* values, const std::int32_t* group, std::size_t n, std::size_t n_groups,
                               const Shard& shard);

// Grids of several sums, side by side.
struct SumGrids {
  std::vector<double> coarse, fine;

  SumGrids(const std::vector<double>& largest, std::size_t n_terms) {
    for (const double one : largest) {
      const SumGrid grid = sum_grid(one, static_cast<double>(n_terms));
      coarse.push_back(grid.coarse);
      fine.push_back(grid.fine);
    }
  }
};

}  // namespace polyleaf
