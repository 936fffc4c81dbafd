// e^x for gradients, the same bits on every device.
#pragma once

#include "rules/rounding.hpp"

namespace polyleaf {

// e^x of x <= 0 within 1.1e-7 of itself, exact at 0; of x below -80 that of -80. The argument is reduced in double
// precision; of what is left, single precision loses nothing that a gradient in float32 would keep. `to_float` rounds
// to the nearest.
template <class ToFloat>
POLYLEAF_RULE float exponential_of_loss(double x, ToFloat to_float) {
  constexpr double kLog2e = 1.4426950408889634, kLn2 = 0.6931471805599453;
  x = x < -80.0 ? -80.0 : x;
  const double shifted = x * kLog2e + kRounder;
  const float r = to_float(x - (shifted - kRounder) * kLn2);
  union {
    float number;
    unsigned bits;
  } power;
  power.number = 0.0013926184f;
  power.number = power.number * r + 0.008363179f;
  power.number = power.number * r + 0.041666556f;
  power.number = power.number * r + 0.16666576f;
  power.number = power.number * r + 0.5f;
  power.number = power.number * r + 1.0f;
  power.number = power.number * r + 1.0f;
  // The integer stands in the low bits; added to the exponent it multiplies by a power of two.
  power.bits += static_cast<unsigned>(bits_of(shifted)) << 23;
  return power.number;
}

}  // namespace polyleaf
