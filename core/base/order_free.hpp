// Sums of float64 numbers that do not depend on their order (rules/exact_sum.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "rules/exact_sum.hpp"

namespace polyleaf {

// Of numbers term(0), ..., term(n - 1).
template <class Term>
double order_free_sum(std::size_t n, Term&& term) {
  double largest = 0.0;
  for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(term(i)));
  const SumGrid grid = sum_grid(largest, static_cast<double>(n));
  ExactSum sum;
  for (std::size_t i = 0; i < n; ++i) sum.add(term(i), grid);
  return sum.value();
}

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
