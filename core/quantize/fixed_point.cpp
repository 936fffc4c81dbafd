#include "quantize/fixed_point.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/order_free.hpp"

namespace polyleaf {
namespace {

// The power of two that weights are multiples of, where that makes small integers of them: then weight 2 equals the row
// twice, to the last bit. Each such integer takes from the 31 bits of a gradient; where that would be too much, a power
// of two far above the weights, so that rounding a row before its weight is applied changes nothing. Only the ratios of
// weights matter.
double weight_grid(const double* weight, std::size_t n, double total) {
  int lowest = std::numeric_limits<int>::max();  // exponent of the lowest bit set in any weight
  for (std::size_t row = 0; row < n; ++row) {
    int exponent;
    const auto mantissa = static_cast<std::int64_t>(std::ldexp(std::frexp(weight[row], &exponent), 53));
    if (mantissa == 0) continue;
    const std::int64_t bit = mantissa & -mantissa;
    lowest = std::min(lowest, exponent - 53 + std::ilogb(static_cast<double>(bit)));
  }
  const double unit = std::ldexp(1.0, lowest);
  if (total / unit <= std::max(0x1p16, 4.0 * static_cast<double>(n))) return unit;
  return std::ldexp(1.0, std::ilogb(total / static_cast<double>(n)) + 16);
}

}  // namespace

FixedPoint::FixedPoint(const double* weight, std::size_t n_rows, int bits, bool at_random) {
  if (weight != nullptr) {
    total_weight = order_free_sum(n_rows, [&](std::size_t row) { return weight[row]; });
    weight_unit = weight_grid(weight, n_rows, total_weight);
  }
  // Rounding moves each row by at most a half, before and after its weight is applied; by up to 1 at random.
  const double slack = (at_random ? 1.0 : 0.5) * static_cast<double>(n_rows) + 0.5 * total_weight / weight_unit + 1.0;
  limit = std::ldexp(1.0, bits) - 1.0 - slack;
}

double FixedPoint::unit(double total) const {
  if (total <= 0) return 1.0;
  const int exponent = std::ilogb(limit / total);
  return std::ldexp(1.0, -std::clamp(exponent, -1000, 1000));
}

}  // namespace polyleaf
