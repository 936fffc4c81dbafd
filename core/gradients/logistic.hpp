// Binary cross entropy, of labels.
#pragma once

#include "gradients/formula.hpp"

namespace polyleaf {

// p - y and p(1 - p).
class Logistic : public Formula {
 public:
  Logistic(const double* y, std::size_t n_rows, int n_outputs) : Formula(n_rows, n_outputs), y_(y) {}

  void gradients(const ScoreBlock& block) const override { gradient_kernels().logistic(block, y_); }

 private:
  const double* y_;
};

}  // namespace polyleaf
