// The grid that gradients are rounded to: integers whose sum over all rows fits so many bits, and a sign.
#pragma once

#include <cstddef>

namespace polyleaf {

// A row is rounded before its weight is applied, so that weight 2 equals the row twice:
// integer = round(weight / weight_unit * round(value * weight_unit / unit)).
struct FixedPoint {
  double total_weight = 0.0;  // 0 without weights
  double weight_unit = 1.0;
  double limit = 0.0;

  FixedPoint(const double* weight, std::size_t n_rows, int bits = 31, bool at_random = false);

  // The smallest power of two that values whose weighted magnitudes sum to `total` may be expressed in.
  double unit(double total) const;
};

}  // namespace polyleaf
