#include "gradients/full_hessian.hpp"

#include <cmath>

namespace polyleaf {

void softmax_hessian(const float* gradient, std::int32_t label, int n_outputs, double* lower) {
  const auto probability = [&](int j) { return static_cast<double>(gradient[j]) + (j == label ? 1.0 : 0.0); };
  for (int j = 0; j < n_outputs; ++j) {
    const double p = probability(j);
    for (int k = 0; k < j; ++k) *lower++ = -p * probability(k);
    // Of the true class, 1 - p is the gradient itself: no digits are lost where p is close to 1.
    *lower++ = p * (j == label ? -static_cast<double>(gradient[j]) : 1.0 - p);
  }
}

bool cholesky(double* lower, int n) {
  double* row = lower;
  for (int j = 0; j < n; ++j) {
    const double* other = lower;
    for (int k = 0; k <= j; ++k) {
      double sum = row[k];
      for (int i = 0; i < k; ++i) sum -= row[i] * other[i];
      if (k < j) {
        row[k] = sum / other[k];
      } else {
        if (!(sum > 0)) return false;
        row[k] = std::sqrt(sum);
      }
      other += k + 1;
    }
    row += j + 1;
  }
  return true;
}

void solve_lower(const double* lower, int n, double* b) {
  const double* row = lower;
  for (int j = 0; j < n; ++j) {
    double sum = b[j];
    for (int k = 0; k < j; ++k) sum -= row[k] * b[k];
    b[j] = sum / row[j];
    row += j + 1;
  }
}

void solve_upper(const double* lower, int n, double* z) {
  for (int j = n - 1; j >= 0; --j) {
    const double* row = lower + static_cast<std::size_t>(j) * static_cast<std::size_t>(j + 1) / 2;
    z[j] /= row[j];
    for (int k = 0; k < j; ++k) z[k] -= row[k] * z[j];
  }
}

}  // namespace polyleaf
