#include "table/cut_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/cut.hpp"

namespace polyleaf {
namespace {

// The largest Real at or below the cut: a Real is above the one exactly when it is above the other.
template <class Real>
Real round_down(double cut) {
  const Real nearest = static_cast<Real>(cut);
  if (static_cast<double>(nearest) <= cut) return nearest;
  return std::nextafter(nearest, -std::numeric_limits<Real>::infinity());
}

}  // namespace

template <class Real>
void CutSearch<Real>::take(const std::vector<double>& cuts) {
  n_cuts_ = cuts.size();
  n_lines_ = n_cuts_ / kCutLine + 1;
  constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
  const bool few_lines = n_lines_ <= kCutLine;
  const std::size_t size = (few_lines ? kCutLine + 1 : n_lines_) * kCutLine;
  lines_.grow(size);
  std::fill_n(lines_.data(), size, kInfinity);
  std::transform(cuts.begin(), cuts.end(), lines_.data(), round_down<Real>);
  const std::size_t n_lasts = few_lines ? kCutLine : n_lines_ - 1;
  lasts_.grow(n_lasts);
  std::fill_n(lasts_.data(), n_lasts, kInfinity);
  for (std::size_t g = 0; g + 1 < n_lines_; ++g) lasts_[g] = lines_[g * kCutLine + kCutLine - 1];
}

template <class Real>
void CutSearch<Real>::find(const Real* values, std::size_t count, std::uint16_t* bins) const {
  const CutLines<Real> lines = {lines_.data(), lasts_.data(), n_cuts_, n_lines_};
  if constexpr (std::is_same_v<Real, float>)
    cut_kernels().find_float(lines, values, count, bins);
  else
    cut_kernels().find_double(lines, values, count, bins);
}

template class CutSearch<float>;
template class CutSearch<double>;

}  // namespace polyleaf
