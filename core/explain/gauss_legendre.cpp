#include "explain/gauss_legendre.hpp"

#include <cmath>

namespace polyleaf {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int kMostSteps = 50;  // of Newton's; a few are enough

}  // namespace

Quadrature gauss_legendre(std::size_t n) {
  Quadrature rule{std::vector<double>(n), std::vector<double>(n)};
  const auto size = static_cast<double>(n);
  for (std::size_t i = 0; i < (n + 1) / 2; ++i) {
    // A root of the Legendre polynomial of degree n in [0, 1), from the largest on; the others are its mirror images.
    double x = 2 * i + 1 == n ? 0.0 : std::cos(kPi * (static_cast<double>(i) + 0.75) / (size + 0.5));
    double slope = 1;
    for (int step = 0; step < kMostSteps; ++step) {
      double value = 1, before = 0;
      for (std::size_t k = 0; k < n; ++k) {
        const auto degree = static_cast<double>(k);
        const double next = ((2 * degree + 1) * x * value - degree * before) / (degree + 1);
        before = value;
        value = next;
      }
      slope = size * (x * value - before) / (x * x - 1);
      const double change = value / slope;
      x -= change;
      if (std::abs(change) <= 1e-16) break;
    }
    rule.point[i] = (1 - x) / 2;
    rule.point[n - 1 - i] = (1 + x) / 2;
    rule.weight[i] = rule.weight[n - 1 - i] = 1 / ((1 - x * x) * slope * slope);
  }
  return rule;
}

}  // namespace polyleaf
