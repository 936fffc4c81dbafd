// The k largest of some numbers, by quickselect: O(d) a call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace polyleaf {

// The k-th largest of the first n terms (1 <= k <= n). `other` is work space of at least n.
inline double kth_largest(const std::vector<double>& terms, std::size_t n, std::size_t k, std::vector<double>& other) {
  std::copy_n(terms.begin(), n, other.begin());
  const auto kth = other.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(other.begin(), kth, other.begin() + static_cast<std::ptrdiff_t>(n), std::greater<double>());
  return *kth;
}

// Calls visit(position) for the k largest, ascending; ties go to the lower position.
template <class Visit>
void each_of_top(const std::vector<double>& terms, std::size_t n, std::size_t k, std::vector<double>& other,
                 Visit&& visit) {
  if (k >= n) {
    for (std::size_t j = 0; j < n; ++j) visit(j);
    return;
  }
  const double least = kth_largest(terms, n, k, other);
  std::size_t equal = k;  // how many of those equal to the k-th are among them
  for (std::size_t j = 0; j < n; ++j) equal -= terms[j] > least ? 1 : 0;
  for (std::size_t j = 0; j < n; ++j) {
    if (terms[j] > least) {
      visit(j);
    } else if (terms[j] == least && equal > 0) {
      visit(j);
      --equal;
    }
  }
}

// Sum of the k largest, in the order of the outputs: the same bits whatever order they were selected in.
inline double top_sum(const std::vector<double>& terms, std::size_t n, std::size_t k, std::vector<double>& other) {
  double sum = 0.0;
  each_of_top(terms, n, k, other, [&](std::size_t j) { sum += terms[j]; });
  return sum;
}

inline std::vector<std::int32_t> top_positions(const std::vector<double>& terms, std::size_t n, std::size_t k,
                                               std::vector<double>& other) {
  std::vector<std::int32_t> positions;
  each_of_top(terms, n, k, other, [&](std::size_t j) { positions.push_back(static_cast<std::int32_t>(j)); });
  return positions;
}

}  // namespace polyleaf
