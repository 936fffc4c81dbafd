#include "quantize/fixed_point.hpp"

#include <algorithm>
#include <limits>

#include "base/order_free.hpp"
#include "rules/grid.hpp"

namespace polyleaf {

FixedPoint::FixedPoint(const double* weight, std::size_t n_rows, int bits, bool at_random, const Shard& shard) {
  const std::size_t n_all = shard.n_rows(n_rows);
  const auto n = static_cast<double>(n_all);
  if (weight != nullptr) {
    total_weight = order_free_sum(n_rows, [&](std::size_t row) { return weight[row]; }, shard, n_all);
    int lowest = std::numeric_limits<int>::max();
    for (std::size_t row = 0; row < n_rows; ++row)
      if (weight[row] != 0) lowest = std::min(lowest, lowest_exponent(weight[row]));
    weight_unit = unit_of_weights(static_cast<int>(shard.smallest(lowest)), total_weight, n);
  }
  limit = grid_limit(bits, n, total_weight / weight_unit, at_random);
}

double FixedPoint::unit(double total) const { return grid_unit(limit, total); }

}  // namespace polyleaf
