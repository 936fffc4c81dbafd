// Gradients of the loss as trees are grown from them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gradients/made_gradients.hpp"
#include "rules/curvature.hpp"

namespace polyleaf {

// Unweighted. Rows are `stride` floats apart.
struct Gradients {
  const float* gradient = nullptr;      // null: they are not stored, but made
  const MadeGradients* made = nullptr;  // without `gradient`: what makes them, and Hessians if there are any
  std::size_t gradient_stride = 0;
  const float* hessian = nullptr;  // null: that of the row, the same for every output
  std::size_t hessian_stride = 0;
  Term hessian_rule = Term::kItself;    // without `hessian`: the Hessian is this function of the gradient, if one
  const float* curvature = nullptr;     // per row; null: 1
  const double* weight = nullptr;       // null: 1 for every row
  const std::int32_t* label = nullptr;  // classes, where the full Hessian of the softmax is wanted
  std::size_t n_rows = 0;
  int n_outputs = 0;
};

}  // namespace polyleaf
