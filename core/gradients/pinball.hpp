// The pinball loss, of quantiles.
#pragma once

#include <cstdint>
#include <vector>

#include "gradients/formula.hpp"

namespace polyleaf {

// Of an output: the column of y that it predicts, and the slopes of the loss on both sides of the target.
struct PinballOutput {
  std::size_t column;
  double above, below;
};

// Gradient `above` where the score is above the target, -`below` where it is below, 0 where it is right. The Hessian
// counts as 1.
class Pinball : public Formula {
 public:
  Pinball(const double* y, std::size_t n_rows, std::size_t n_targets, std::vector<PinballOutput> outputs)
      : Formula(n_rows, static_cast<int>(outputs.size())), y_(y), n_targets_(n_targets), outputs_(std::move(outputs)) {}

  bool has_hessian() const override { return false; }

  void gradients(const ScoreBlock& block) const override {
    const double* y = y_;
    const std::size_t n_targets = n_targets_;
    const PinballOutput* outputs = outputs_.data();
    over_cells(block, [&](std::size_t row, std::size_t j, std::size_t cell, std::size_t place) {
      const PinballOutput& output = outputs[j];
      const double target = y[row * n_targets + output.column];
      const double score = block.scores[cell];
      const double value = score > target ? output.above : score < target ? -output.below : 0.0;
      block.gradient[place] = static_cast<float>(value);
    });
  }

 private:
  const double* y_;
  std::size_t n_targets_;
  std::vector<PinballOutput> outputs_;
};

}  // namespace polyleaf
