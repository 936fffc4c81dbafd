// Rounding to integers without a change of the rounding mode, and the bits of numbers.
#pragma once

#include "rules/rule.hpp"

namespace polyleaf {

POLYLEAF_RULE long long bits_of(double x) {
  union {
    double number;
    long long bits;
  } both;
  both.number = x;
  return both.bits;
}

POLYLEAF_RULE double number_of_bits(long long bits) {
  union {
    long long bits;
    double number;
  } both;
  both.bits = bits;
  return both.number;
}

// Adding 1.5 * 2^52 rounds a number below 2^51 to the nearest integer, of two the even one, which then stands in its
// low bits.
constexpr double kRounder = 6755399441055744.0;

POLYLEAF_RULE double round_even(double x) { return (x + kRounder) - kRounder; }

POLYLEAF_RULE int to_int32(double x) { return static_cast<int>(bits_of(x + kRounder)); }

}  // namespace polyleaf
