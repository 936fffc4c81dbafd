// Huber's loss.
#pragma once

#include <algorithm>
#include <vector>

#include "gradients/formula.hpp"

namespace polyleaf {

// Of an output: what gradients are multiples of, and what the loss is multiplied by.
struct HuberOutput {
  double unit, factor;
};

// The residual, cut off at +-delta, and the curvature of the parabola that touches the loss from above,
// min(1, delta / |residual|), at most `largest`.
class Huber : public Formula {
 public:
  Huber(const double* y, std::size_t n_rows, std::vector<HuberOutput> outputs, double delta, double largest)
      : Formula(n_rows, static_cast<int>(outputs.size())),
        y_(y),
        outputs_(std::move(outputs)),
        delta_(delta),
        largest_(largest) {}

  void gradients(const ScoreBlock& block) const override {
    const double *y = y_, delta = delta_, largest = largest_;
    const HuberOutput* outputs = outputs_.data();
    over_cells(block, [&](std::size_t, std::size_t j, std::size_t cell, std::size_t place) {
      const double residual = block.scores[cell] - y[cell];
      const double clipped = std::clamp(residual, -delta, delta);
      const double curvature = residual == clipped ? 1.0 : clipped / residual;
      block.gradient[place] = static_cast<float>(clipped / outputs[j].unit * outputs[j].factor);
      if (block.hessian != nullptr)
        block.hessian[place] = static_cast<float>(std::min(curvature * outputs[j].factor, largest));
    });
  }

 private:
  const double* y_;
  std::vector<HuberOutput> outputs_;
  double delta_, largest_;
};

}  // namespace polyleaf
