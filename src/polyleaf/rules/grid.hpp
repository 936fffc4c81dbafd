// The grid that gradients are rounded to: multiples of a power of two for each channel, as integers whose sum over all
// rows fits 31 bits, or fewer. Sums of integers are exact in any order.
//
//   integer = round(weight / weight_unit * round(value * weight_unit / unit))
//
// A row is rounded before its weight is applied, so that weight 2 equals the row twice.
#pragma once

#include "rules/rounding.hpp"

namespace polyleaf {

// The integer of a row's value. `scale`: weight_unit / unit; `weight`: that of the row / weight_unit.
POLYLEAF_RULE int on_grid(double value, double scale, double weight) {
  return to_int32(weight * round_even(value * scale));
}

// e with 2^e <= |x| < 2^(e + 1); below the normal numbers -1023, of infinity 1024.
POLYLEAF_RULE int exponent_of(double x) { return static_cast<int>((bits_of(x) >> 52) & 0x7ff) - 1023; }

// Of the lowest bit that is set in a number above 0: the number is a multiple of 2 to this power.
POLYLEAF_RULE int lowest_exponent(double x) {
  constexpr long long kFraction = 0xfffffffffffffll;
  const int exponent = exponent_of(x);
  const long long fraction = bits_of(x) & kFraction;
  const long long digits = exponent == -1023 ? fraction : fraction | (kFraction + 1);
  return (exponent == -1023 ? -1022 : exponent) - 52 + exponent_of(static_cast<double>(digits & -digits));
}

// 2^exponent, 0 or infinity where that is out of range.
POLYLEAF_RULE double power_of_two(int exponent) {
  if (exponent > 1023) return number_of_bits(0x7ff0000000000000ll);
  if (exponent >= -1022) return number_of_bits(static_cast<long long>(exponent + 1023) << 52);
  return exponent >= -1074 ? number_of_bits(1ll << (exponent + 1074)) : 0;
}

// The unit of weights: the power of two that all are multiples of, where that makes small integers of them. Each such
// integer takes from the 31 bits of a gradient; where that would be too much, a power of two far above the weights, so
// that rounding a row before its weight is applied changes nothing. Only the ratios of weights matter. `lowest`: the
// least of their lowest exponents; `total`: their sum.
POLYLEAF_RULE double unit_of_weights(int lowest, double total, double n_rows) {
  const double unit = power_of_two(lowest);
  const double most = 4 * n_rows > 0x1p16 ? 4 * n_rows : 0x1p16;
  return total / unit <= most ? unit : power_of_two(exponent_of(total / n_rows) + 16);
}

// What magnitudes of integers may sum to, so that rounded they fit this many bits: rounding moves each row by at most a
// half, before and after its weight is applied; by up to 1 at random. `weight`: the sum of weights / weight_unit.
POLYLEAF_RULE double grid_limit(int bits, double n_rows, double weight, bool at_random) {
  const double slack = (at_random ? 1.0 : 0.5) * n_rows + 0.5 * weight + 1.0;
  return power_of_two(bits) - 1.0 - slack;
}

// The smallest power of two that values whose weighted magnitudes sum to `total` may be expressed in.
POLYLEAF_RULE double grid_unit(double limit, double total) {
  if (!(total > 0)) return 1;
  const int exponent = exponent_of(limit / total);
  return power_of_two(exponent < -1000 ? 1000 : exponent > 1000 ? -1000 : -exponent);
}

}  // namespace polyleaf
