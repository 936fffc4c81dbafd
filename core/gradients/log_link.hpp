// Deviances of counts and amounts, whose predictions are exponentials of scores.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "gradients/formula.hpp"

namespace polyleaf {

// Deviance of power 1 (Poisson) to 2 (gamma) with log link, of targets in multiples of exp(log_mean[j]). The Hessian is
// the exact one, or more where a row's own Newton step would otherwise go past its target.
class LogLink : public Formula {
 public:
  LogLink(const double* y, std::size_t n_rows, std::vector<double> log_mean, double power)
      : Formula(n_rows, static_cast<int>(log_mean.size())), y_(y), log_mean_(std::move(log_mean)), power_(power) {}

  void gradients(const ScoreBlock& block) const override {
    // Factors of e^50 between a prediction and the mean, or e^80 between it and its target, are as good as more.
    constexpr double kFarFromMean = 50;
    constexpr double kFarFromTarget = 80;
    const double *y = y_, *log_mean = log_mean_.data(), power = power_;
    over_cells(block, [&](std::size_t, std::size_t j, std::size_t cell, std::size_t place) {
      const double score = std::clamp(block.scores[cell] - log_mean[j], -kFarFromMean, kFarFromMean);
      // The derivative is mean - y, divided by mean^(power - 1): `up` minus `down`.
      const double up = std::exp((2 - power) * score);
      double gradient = up, hessian = (2 - power) * up;
      if (y[cell] > 0) {
        const double step = std::min(std::log(y[cell]) - log_mean[j] - score, kFarFromTarget);
        const double difference = up * std::expm1(step);
        const double exact = (2 - power) * up + (power - 1) * (up + difference);
        gradient = -difference;
        hessian = std::max(exact, step != 0 ? difference / step : up);
      }
      block.gradient[place] = static_cast<float>(gradient);
      if (block.hessian != nullptr) block.hessian[place] = static_cast<float>(hessian);
    });
  }

 private:
  const double* y_;
  std::vector<double> log_mean_;
  double power_;
};

}  // namespace polyleaf
