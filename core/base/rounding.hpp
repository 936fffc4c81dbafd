// Rounding to integers without a change of the rounding mode, for files that are compiled once per instruction set.
#pragma once

#include <cstdint>

#ifndef POLYLEAF_ISA
#error "POLYLEAF_ISA names the instruction set this file is compiled for"
#endif

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

// Adding 1.5 * 2^52 rounds a double to the nearest integer, which then stands in its low bits.
constexpr double kRounder = 6755399441055744.0;

inline double round_even(double x) { return (x + kRounder) - kRounder; }

inline std::int64_t bits_of(double x) {
  std::int64_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}

inline std::int32_t to_int32(double x) { return static_cast<std::int32_t>(bits_of(x + kRounder)); }

}  // namespace
}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
