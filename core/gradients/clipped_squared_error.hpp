// The loss of GBDT-sparse.
#pragma once

#include <algorithm>

#include "gradients/formula.hpp"

namespace polyleaf {

// Gradient of max(1 - score, 0)^2 / 2 where y is 1, max(score, 0)^2 / 2 where it is 0; the Hessian counts as 1.
class ClippedSquaredError : public Formula {
 public:
  ClippedSquaredError(const double* y, std::size_t n_rows, int n_outputs) : Formula(n_rows, n_outputs), y_(y) {}

  bool has_hessian() const override { return false; }

  void gradients(const ScoreBlock& block) const override {
    const double* y = y_;
    over_cells(block, [&](std::size_t, std::size_t, std::size_t cell, std::size_t place) {
      const double score = block.scores[cell];
      block.gradient[place] = static_cast<float>(y[cell] > 0 ? -std::max(1.0 - score, 0.0) : std::max(score, 0.0));
    });
  }

 private:
  const double* y_;
};

}  // namespace polyleaf
