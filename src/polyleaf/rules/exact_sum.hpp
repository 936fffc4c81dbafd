// Sums that do not depend on the order of their terms, the same on every device.
//
// Each term is rounded to a multiple of a coarse power of two, and what that leaves to a multiple of a fine one.
// Multiples of a power of two add up without rounding as long as there are no more than 2^53 of them, so that the
// powers are chosen by the number of terms and a bound on their size:
//
//   bound 2^e, fewer than 2^L terms:      | 52 - L bits of a term | 53 - L bits of the rest |
//                                        2^e                  2^(e+L-52)              2^(e+2L-105)
//
// Of a million float32 numbers this loses nothing that lies less than 2^40 below the largest, and a sum is rounded
// once.
#pragma once

#include "rules/rule.hpp"

#if !defined(__CUDACC__)
#include <cmath>
#endif

namespace polyleaf {

// What is added to a term and taken away again, to round it: 1.5 * 2^52 times the power of two.
struct SumGrid {
  double coarse;
  double fine;
};

// For terms of at most this magnitude, and at most so many of them.
POLYLEAF_RULE SumGrid sum_grid(double largest, double n_terms) {
#if !defined(__CUDACC__)
  using std::frexp;
  using std::ldexp;
#endif
  constexpr int kMost = 900;  // exponents: those of the grid stay within range
  int size = 0, count = 1;
  frexp(n_terms, &count);  // fewer than 2^count
  if (largest > 0 && largest < 1.7e308) frexp(largest, &size);
  size = size < -kMost ? -kMost : size > kMost ? kMost : size;
  count = count < 1 ? 1 : count;
  return {ldexp(1.5, size + count), ldexp(1.5, size + 2 * count - 53)};
}

POLYLEAF_RULE double round_to(double x, double grid) { return (x + grid) - grid; }

POLYLEAF_RULE void add_exactly(double x, double coarse_grid, double fine_grid, double& coarse, double& fine) {
  const double rounded = round_to(x, coarse_grid);
  coarse += rounded;
  fine += round_to(x - rounded, fine_grid);
}

struct ExactSum {
  double coarse = 0;
  double fine = 0;

  void add(double x, const SumGrid& grid) { add_exactly(x, grid.coarse, grid.fine, coarse, fine); }
  void add(const ExactSum& other) {
    coarse += other.coarse;
    fine += other.fine;
  }
  double value() const { return coarse + fine; }
};

}  // namespace polyleaf
