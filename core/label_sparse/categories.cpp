#include "label_sparse/categories.hpp"

#include <algorithm>
#include <cmath>

#include "search/category_order.hpp"

namespace polyleaf {
namespace {

// The vector of category c is (sparse gradients - hessian x mean) / root of the smoothed Hessian: a sparse part, and a
// dense part that is the same for all but for a factor.
class Vectors {
 public:
  explicit Vectors(const SparseCategories& in) : in_(in), factor_(in.n_outputs), mean_(in.n_outputs, 0.0) {
    double largest = 0.0, total = 0.0;
    for (std::size_t j = 0; j < in.n_outputs; ++j) {
      factor_[j] = std::sqrt(in.factor[j]);
      largest = std::max(largest, factor_[j]);
    }
    if (largest > 0)
      for (double& factor : factor_) factor /= largest;
    for (std::size_t e = 0; e < in.output.size(); ++e) mean_[at(e)] += in.gradient[e];
    for (const double hessian : in.hessian) total += hessian;
    for (std::size_t j = 0; j < in.n_outputs; ++j) mean_[j] = total > 0 ? factor_[j] * mean_[j] / total : 0.0;
    // The mean Hessian of a row of weight 1 is 1.
    for (const double hessian : in.hessian) denominator_.push_back(hessian + in.reg_lambda + kCategorySmoothing);
  }

  void squares(double* out) const {
    double common = 0.0;
    for (std::size_t c = 0; c < in_.hessian.size(); ++c) common += in_.hessian[c] * in_.hessian[c] / denominator_[c];
    for (std::size_t j = 0; j < in_.n_outputs; ++j) out[j] = mean_[j] * mean_[j] * common;
    for (std::size_t c = 0; c < in_.hessian.size(); ++c)
      for (std::size_t e = in_.begin[c]; e < in_.begin[c + 1]; ++e)
        out[at(e)] += value(e) * (value(e) - 2 * in_.hessian[c] * mean_[at(e)]) / denominator_[c];
  }

  void multiply(const double* u, double* out) const {
    std::fill_n(out, in_.n_outputs, 0.0);
    const double of_mean = along_mean(u);
    double common = 0.0;
    for (std::size_t c = 0; c < in_.hessian.size(); ++c) {
      const double weight = along(c, u, of_mean) / denominator_[c];
      for (std::size_t e = in_.begin[c]; e < in_.begin[c + 1]; ++e) out[at(e)] += value(e) * weight;
      common += in_.hessian[c] * weight;
    }
    for (std::size_t j = 0; j < in_.n_outputs; ++j) out[j] -= common * mean_[j];
  }

  // The leaf values along a direction.
  std::vector<double> project(const std::vector<double>& direction) const {
    const double of_mean = along_mean(direction.data());
    std::vector<double> out(in_.hessian.size());
    for (std::size_t c = 0; c < out.size(); ++c) out[c] = -along(c, direction.data(), of_mean) / denominator_[c];
    return out;
  }

 private:
  std::size_t at(std::size_t e) const { return static_cast<std::size_t>(in_.output[e]); }
  double value(std::size_t e) const { return factor_[at(e)] * in_.gradient[e]; }
  double along_mean(const double* u) const {
    double sum = 0.0;
    for (std::size_t j = 0; j < in_.n_outputs; ++j) sum += mean_[j] * u[j];
    return sum;
  }
  double along(std::size_t c, const double* u, double of_mean) const {
    double sum = 0.0;
    for (std::size_t e = in_.begin[c]; e < in_.begin[c + 1]; ++e) sum += value(e) * u[at(e)];
    return sum - in_.hessian[c] * of_mean;
  }

  const SparseCategories& in_;
  std::vector<double> factor_, mean_, denominator_;
};

}  // namespace

void put_in_order(const SparseCategories& categories, std::vector<std::uint32_t>& order) {
  const Vectors vectors(categories);
  if (categories.n_outputs == 0) return sort_positions(std::vector<double>(categories.hessian.size(), 0.0), order);
  sort_positions(vectors.project(leading_direction(vectors, categories.n_outputs)), order);
}

}  // namespace polyleaf
