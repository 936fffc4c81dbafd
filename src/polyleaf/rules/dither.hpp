// Rounding at random, the same on every device.
#pragma once

#include "rules/rule.hpp"

namespace polyleaf {

// A number between -1/2 and 1/2, never at its ends: rounded to the nearest integer after it was added, a number is
// what it was on average, and an integer stays as it is. It depends on the number's own bits, so that every round
// draws another one.
POLYLEAF_RULE double dither(unsigned bits, unsigned row, unsigned channel) {
  unsigned mixed = (bits ^ (row * 0x9e3779b1u + channel * 0x85ebca77u)) * 0x2c1b3c6du;
  mixed = (mixed ^ (mixed >> 15)) * 0x297a2d39u;
  return static_cast<double>(static_cast<int>(mixed >> 8)) * 0x1p-24 + (0x1p-25 - 0.5);
}

}  // namespace polyleaf
