// Half the squared error.
#pragma once

#include <vector>

#include "gradients/formula.hpp"

namespace polyleaf {

// Gradient of (score - y)^2 / 2 in multiples of each output's unit; the Hessian is 1.
class SquaredError : public Formula {
 public:
  SquaredError(const double* y, std::size_t n_rows, std::vector<double> unit)
      : Formula(n_rows, static_cast<int>(unit.size())), y_(y), inverse_(std::move(unit)) {
    for (double& one : inverse_) one = 1.0 / one;  // powers of two: scaling first is exact and cannot overflow
  }

  bool has_hessian() const override { return false; }

  void gradients(const ScoreBlock& block) const override {
    const double *y = y_, *inverse = inverse_.data();
    over_cells(block, [&](std::size_t, std::size_t j, std::size_t cell, std::size_t place) {
      block.gradient[place] = static_cast<float>(block.scores[cell] * inverse[j] - y[cell] * inverse[j]);
    });
  }

 private:
  const double* y_;
  std::vector<double> inverse_;
};

}  // namespace polyleaf
