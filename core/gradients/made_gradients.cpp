#include "gradients/made_gradients.hpp"

#include <algorithm>

namespace polyleaf {

void MadeGradients::make(std::size_t begin, std::size_t end, float* gradient, float* hessian) const {
  formula_.gradients({scores_, n_outputs(), begin, end, gradient, formula_hessian_ ? hessian : nullptr, begin});
  if (cell_weight_ == nullptr) return;
  const auto d = static_cast<std::size_t>(n_outputs());
  const float* weight = cell_weight_ + begin * d;
  const std::size_t n = (end - begin) * d;
  for (std::size_t i = 0; i < n; ++i) gradient[i] *= weight[i];
  if (!formula_hessian_)
    std::copy(weight, weight + n, hessian);
  else
    for (std::size_t i = 0; i < n; ++i) hessian[i] *= weight[i];
}

}  // namespace polyleaf
