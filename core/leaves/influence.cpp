#include "leaves/influence.hpp"

#include <limits>

#include "rules/influence.hpp"

namespace polyleaf {

std::vector<double> bounded_sums(const LeafSums& sums, const std::vector<double>& total, const GradientBounds& bounds,
                                 double row, bool weighted, const RowsInLeaves& places, int n_threads) {
  const std::size_t n_leaves = places.leaves.size(), d = bounds.gradient.size(), stride = sums.stride();
  double weight = 0.0;
  std::vector<double> ordinary(d, 0.0);  // leaf by leaf, in their order, on every device
  for (std::size_t leaf = 0; leaf < n_leaves; ++leaf) {
    weight += total[leaf * stride + 2 * d];
    for (std::size_t j = 0; j < d; ++j) ordinary[j] += total[leaf * stride + d + j];
  }
  bool all_ordinary = !weighted;  // bounds of rows with weights are not those of their gradients
  for (std::size_t j = 0; j < d; ++j) {
    ordinary[j] /= weight;
    all_ordinary = all_ordinary && bounds.gradient[j] <= kOrdinaryMagnitudes * ordinary[j];
  }
  if (all_ordinary) return {};

  const std::vector<double> largest = sums.largest(places, n_threads);
  std::vector<double> limits(n_leaves * d);
  std::vector<char> is_bounded(limits.size(), 0);
  bool any = false;
  for (std::size_t k = 0; k < limits.size(); ++k) {
    const double* sum = total.data() + k / d * stride;
    const double limit = influence_limit(ordinary[k % d], row, sum[d + k % d], largest[k], sum[2 * d]);
    is_bounded[k] = largest[k] > limit;
    limits[k] = is_bounded[k] != 0 ? limit : std::numeric_limits<double>::infinity();
    any = any || is_bounded[k] != 0;
  }
  if (!any) return {};

  std::vector<double> out = sums.sum_within(limits, places, n_threads);
  std::vector<double> cut(d, 0.0);  // off all leaves
  for (std::size_t k = 0; k < out.size(); ++k) {
    const double whole = total[k / d * stride + k % d];
    if (is_bounded[k] != 0)
      cut[k % d] += whole - out[k];
    else
      out[k] = whole;
  }
  for (std::size_t k = 0; k < out.size(); ++k)
    out[k] = said_to_all(out[k], total[k / d * stride + 2 * d], cut[k % d] / weight);
  return out;
}

}  // namespace polyleaf
