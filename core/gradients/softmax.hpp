// Softmax cross entropy, of classes that exclude each other.
#pragma once

#include <cstdint>

#include "gradients/formula.hpp"

namespace polyleaf {

// p - onehot(label), and the Hessian that a rule makes of it.
class Softmax : public Formula {
 public:
  Softmax(const std::int32_t* label, std::size_t n_rows, int n_outputs, Term curvature)
      : Formula(n_rows, n_outputs), label_(label), curvature_(curvature) {}

  void gradients(const ScoreBlock& block) const override { gradient_kernels().softmax(block, label_, curvature_); }

 private:
  const std::int32_t* label_;
  Term curvature_;
};

}  // namespace polyleaf
