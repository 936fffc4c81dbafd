// The grid (rules/grid.hpp) of the gradients of some rows.
#pragma once

#include <cstddef>

#include "base/shard.hpp"

namespace polyleaf {

struct FixedPoint {
  double total_weight = 0.0;  // 0 without weights
  double weight_unit = 1.0;
  double limit = 0.0;

  FixedPoint(const double* weight, std::size_t n_rows, int bits = 31, bool at_random = false, const Shard& shard = {});

  // The smallest power of two that values whose weighted magnitudes sum to `total` may be expressed in.
  double unit(double total) const;
};

}  // namespace polyleaf
