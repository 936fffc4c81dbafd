// The order in which the categories of a node are told apart when there are many.
//
// Of one output, the best of all splits into two sets takes the categories in the order of their leaf values. Of
// several, the two sets are separated by a plane across some direction in the space of leaf values. The one taken is
// the first principal component of the categories' vectors, each weighted as in the score: the direction along which
// one split can gain most. (Coppersmith, Hong and Hosking, 1999, order categories like this for the classes of a
// decision tree.)
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace polyleaf {

// Up to so many categories of a feature, each is tried against the rest instead.
constexpr std::size_t kMostOneAgainstRest = 4;
// Rows of the average kind that speak for the node's own value in the place of each category: a rare one stays near it.
constexpr double kCategorySmoothing = 10.0;
constexpr int kPowerSteps = 12;
// Numbers this close to the largest are as large: neither choice below may hang on the last bits.
constexpr double kStartTie = 1e-9;
constexpr double kSignTie = 1e-6;

inline std::size_t first_largest(const std::vector<double>& values, double tie) {
  double largest = 0.0;
  for (const double value : values) largest = std::max(largest, std::fabs(value));
  std::size_t at = 0;
  while (at + 1 < values.size() && !(std::fabs(values[at]) >= (1 - tie) * largest)) ++at;
  return at;
}

// The leading eigenvector of X^T X, X being categories x outputs, after kPowerSteps steps from the output with the
// largest sum of squares. Its first largest entry is positive. `vectors` has
//   squares(out): the sums of squares of the columns of X,
//   multiply(u, out): X^T X u.
template <class Vectors>
std::vector<double> leading_direction(const Vectors& vectors, std::size_t n_outputs) {
  std::vector<double> direction(n_outputs, 0.0);
  std::vector<double> next(n_outputs, 0.0);
  if (n_outputs > 1) vectors.squares(next.data());
  direction[first_largest(next, kStartTie)] = 1.0;
  for (int step = 0; step < kPowerSteps && n_outputs > 1; ++step) {
    vectors.multiply(direction.data(), next.data());
    double largest = 0.0;
    for (const double entry : next) largest = std::max(largest, std::fabs(entry));
    if (!(largest > 0)) break;  // no category differs from the others
    for (std::size_t j = 0; j < n_outputs; ++j) direction[j] = next[j] / largest;
  }
  if (direction[first_largest(direction, kSignTie)] < 0)
    for (double& entry : direction) entry = -entry;
  return direction;
}

// What the best cut of an order found on noise gains on average. Each of C categories of n rows has a leaf value of
// variance v / n then; the two halves of their order differ as the halves of a normal distribution do, which makes a
// score of 2/pi v (C - 1) more than the node's. Categories of unequal size count as fewer. Of several outputs, the
// leading direction has a larger variance than any output: by about the factor that random matrices have.
class CategoryNoise {
 public:
  CategoryNoise() = default;
  // `variance`: per output, of a row's gradient relative to its Hessian, in the metric of the score.
  explicit CategoryNoise(const std::vector<double>& variance) {
    double total = 0.0;
    for (const double one : variance) {
      if (!(one > 0 && one < 1e300)) continue;
      largest_ = std::max(largest_, one);
      total += one;
    }
    // The last bits of sums over rows depend on how the rows are written down.
    int exponent;
    const double digits = std::frexp(largest_, &exponent);
    directions_ = largest_ > 0 ? std::rint(std::ldexp(total / largest_, 20)) / 0x1p20 : 1.0;
    largest_ = std::ldexp(std::rint(std::ldexp(digits, 20)), exponent - 20);
  }

  // `hessian`: of each category.
  double score(const std::vector<double>& hessian) const {
    double roots = 0.0, total = 0.0;
    for (const double one : hessian) {
      roots += std::sqrt(std::max(one, 0.0));
      total += std::max(one, 0.0);
    }
    if (!(total > 0)) return 0.0;
    const double n_categories = roots * roots / total;
    const double root = std::sqrt(std::max(n_categories - 1, 0.0)) + std::sqrt(std::max(directions_ - 1, 0.0));
    return kHalvesApart * largest_ * root * root;
  }

 private:
  static constexpr double kHalvesApart = 0.6366197723675814;  // 2 / pi
  double largest_ = 0.0;
  double directions_ = 1.0;  // total variance relative to the largest
};

// Positions in ascending order of the values; ties keep their order.
inline void sort_positions(const std::vector<double>& values, std::vector<std::uint32_t>& positions) {
  std::vector<std::pair<double, std::uint32_t>> sorted(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) sorted[i] = {values[i], static_cast<std::uint32_t>(i)};
  std::sort(sorted.begin(), sorted.end());
  positions.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) positions[i] = sorted[i].second;
}

}  // namespace polyleaf
