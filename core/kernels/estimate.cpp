#include "kernels/estimate.hpp"

#include "base/lanes.hpp"
#include "rules/scoring.hpp"

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

// Gradients of up to V vectors of outputs and, unless they share one, their Hessians.
template <int V, bool Shared>
struct OutputSums {
  Integers gradient[V];
  Integers hessian[Shared ? 1 : V];

  OutputSums() : gradient{}, hessian{} {}
  OutputSums(const std::int32_t* channels, int hessian_channel) : OutputSums() { add(channels, hessian_channel); }
  void add(const std::int32_t* channels, int hessian_channel) {
    for (int v = 0; v < V; ++v) gradient[v] += load_integers(channels + v * kFloats);
    if (!Shared)
      for (int v = 0; v < V; ++v) hessian[v] += load_integers(channels + hessian_channel + v * kFloats);
  }
  OutputSums operator+(const OutputSums& other) const {
    OutputSums sums = *this;
    for (int v = 0; v < V; ++v) sums.gradient[v] += other.gradient[v];
    if (!Shared)
      for (int v = 0; v < V; ++v) sums.hessian[v] += other.hessian[v];
    return sums;
  }
};

// 1 / (H + lambda) of both sides, where all outputs share H.
struct Inverse {
  float left;
  float right;
};

template <int V, bool Shared>
inline float estimate_one(const ScanTile& t, const OutputSums<V, Shared>& total, const OutputSums<V, Shared>& left,
                          const Inverse& inverse) {
  Floats sum_left = {0};
  Floats sum_right = {0};
  for (int v = 0; v < V; ++v) {
    const Floats factor = load_floats(t.factor32 + v * kFloats);
    const Floats gl = to_floats(left.gradient[v]);
    const Floats gr = to_floats(total.gradient[v] - left.gradient[v]);
    if (Shared) {
      sum_left += factor * gl * gl;
      sum_right += factor * gr * gr;
    } else {
      const Floats unit = load_floats(t.hessian_unit32 + v * kFloats);
      const Floats lambda = load_floats(t.lambda32 + v * kFloats);
      const Floats dl = to_floats(left.hessian[v]) * unit + lambda;
      const Floats dr = to_floats(total.hessian[v] - left.hessian[v]) * unit + lambda;
      sum_left += factor * ((gl * gl * dr + gr * gr * dl) / (dl * dr));
    }
  }
  if (!Shared) return sum_floats(sum_left);
  return sum_floats(sum_left * inverse.left + sum_right * inverse.right);
}

template <int V, bool Shared>
float estimate_steps(const ScanTile& t) {
  const OutputSums<V, Shared> total(t.totals, t.hessian_channel);
  const auto width = static_cast<std::size_t>(t.width);
  OutputSums<V, Shared> missing;
  if (t.histogram == nullptr)
    for (std::uint32_t i = t.n_rows - t.n_missing; i < t.n_rows; ++i)
      missing.add(t.payload + t.order[i] * width, t.hessian_channel);
  else if (t.missing != nullptr)
    missing.add(t.missing, t.hessian_channel);
  OutputSums<V, Shared> prefix;
  float highest = 0.0f;
  const auto add = [&](const OutputSums<V, Shared>& left, std::size_t at) {
    Inverse inverse{};
    if (Shared) inverse = {static_cast<float>(t.inverse_left[at]), static_cast<float>(t.inverse_right[at])};
    const float estimated = t.estimated[at] + estimate_one(t, total, left, inverse);
    t.estimated[at] = estimated;
    highest = estimated > highest ? estimated : highest;
  };
  std::uint32_t row = 0;
  for (std::size_t s = 0; s < t.n_steps; ++s) {
    const Step& step = t.steps[s];
    if (t.histogram != nullptr)
      prefix.add(t.histogram + step.slot * width, t.hessian_channel);
    else
      for (; row < step.rows_end; ++row) prefix.add(t.payload + t.order[row] * width, t.hessian_channel);
    if (step.right_allowed) add(prefix, 2 * s);
    if (!step.left_allowed) continue;
    add(prefix + missing, 2 * s + 1);
  }
  return highest;
}

float estimate(const ScanTile& t) {
  const bool one = t.n_outputs <= kFloats;
  if (t.inverse_left != nullptr) return one ? estimate_steps<1, true>(t) : estimate_steps<2, true>(t);
  return one ? estimate_steps<1, false>(t) : estimate_steps<2, false>(t);
}

// What no split behind any of some bins in a row can exceed, after the bins before them: a score is convex in the
// gradient, and both sides weigh at least as much as the left one does after the first bin, the right one after the
// last.
template <int V, bool Shared>
inline float bound_of_bins(const ScanTile& t, const OutputSums<V, Shared>& total, const OutputSums<V, Shared>& first,
                           const OutputSums<V, Shared>& last, const SignedIntegers* lowest,
                           const SignedIntegers* highest, const Inverse& inverse) {
  Floats sum = {0};
  for (int v = 0; v < V; ++v) {
    const Floats factor = load_floats(t.factor32 + v * kFloats);
    Floats left, right;  // what squares of gradients are multiplied by
    if (Shared) {
      left = Floats{} + inverse.left;
      right = Floats{} + inverse.right;
    } else {
      const Floats unit = load_floats(t.hessian_unit32 + v * kFloats);
      const Floats lambda = load_floats(t.lambda32 + v * kFloats);
      right = to_floats(first.hessian[v]) * unit + lambda;
      left = to_floats(total.hessian[v] - last.hessian[v]) * unit + lambda;
    }
    const auto term = [&](const SignedIntegers& of_left) {
      const Floats gl = to_floats((Integers)of_left);
      const Floats gr = to_floats(total.gradient[v] - (Integers)of_left);
      return gl * gl * left + gr * gr * right;
    };
    const Floats low = term(lowest[v]);
    const Floats high = term(highest[v]);
    const Floats larger = low > high ? low : high;
    sum += factor * (Shared ? larger : larger / (left * right));
  }
  return sum_floats(sum);
}

// The candidates of a feature, bin by bin.
template <int V, bool Shared>
class BinSearch {
 public:
  explicit BinSearch(const BinsTile& b)
      : b_(b),
        t_(b.terms),
        total_(t_.totals, t_.hessian_channel),
        n_(t_.totals[b.count_channel]),
        whole_weight_(t_.totals[b.weight_channel] * b.shared_unit) {
    if (t_.missing == nullptr) return;
    missing_.add(t_.missing, t_.hessian_channel);
    n_missing_ = t_.missing[b.count_channel];
    missing_weight_ = t_.missing[b.weight_channel];
  }

  float highest() {
    const std::int32_t* bin = t_.histogram;
    for (std::size_t first = 0; first < b_.n_bins && n_ - count_ >= b_.least_rows; first += kTogether) {
      const std::size_t n = b_.n_bins - first < kTogether ? b_.n_bins - first : kTogether;
      // Few bins differ too much for a bound.
      if (b_.bar == 0.0f || b_.n_bins < kLeastBounded || !pass(bin, n)) look_at(bin, n);
      bin += n * static_cast<std::size_t>(t_.width);
    }
    return highest_;
  }

 private:
  using Sums = OutputSums<V, Shared>;
  static constexpr std::size_t kTogether = 8;
  static constexpr std::size_t kLeastBounded = 32;
  static constexpr float kFarBelow = 0.9999f;

  Inverse inverse_of(double left_weight, double right_weight) const {
    return {1.0f / static_cast<float>(left_weight + b_.shared_lambda),
            1.0f / static_cast<float>(right_weight + b_.shared_lambda)};
  }

  // Goes past some bins if none of their candidates can come near the bar.
  bool pass(const std::int32_t* bin, std::size_t n) {
    Sums left = prefix_;
    Sums first;
    SignedIntegers lowest[V], highest[V];
    std::int32_t count = count_;
    std::int64_t weight = weight_, first_weight = 0;
    for (std::size_t i = 0; i < n; ++i, bin += t_.width) {
      left.add(bin, t_.hessian_channel);
      count += bin[b_.count_channel];
      if (Shared) weight += bin[b_.weight_channel];
      for (int v = 0; v < V; ++v) {
        const auto gradient = (SignedIntegers)left.gradient[v];
        if (i == 0) lowest[v] = highest[v] = gradient;
        lowest[v] = gradient < lowest[v] ? gradient : lowest[v];
        highest[v] = gradient > highest[v] ? gradient : highest[v];
      }
      if (i > 0) continue;
      first = left;
      first_weight = weight;
    }
    if (!stays_below(first, left, lowest, highest, first_weight, weight)) return false;
    if (n_missing_ > 0) {
      for (int v = 0; v < V; ++v) {
        lowest[v] = (SignedIntegers)((Integers)lowest[v] + missing_.gradient[v]);
        highest[v] = (SignedIntegers)((Integers)highest[v] + missing_.gradient[v]);
      }
      if (!stays_below(first + missing_, left + missing_, lowest, highest, first_weight + missing_weight_,
                       weight + missing_weight_))
        return false;
    }
    prefix_ = left;
    count_ = count;
    weight_ = weight;
    return true;
  }

  bool stays_below(const Sums& first, const Sums& last, const SignedIntegers* lowest, const SignedIntegers* highest,
                   std::int64_t first_weight, std::int64_t last_weight) const {
    Inverse inverse{};
    if (Shared)
      inverse = inverse_of(static_cast<double>(first_weight) * b_.shared_unit,
                           whole_weight_ - static_cast<double>(last_weight) * b_.shared_unit);
    return bound_of_bins<V, Shared>(t_, total_, first, last, lowest, highest, inverse) < kFarBelow * b_.bar;
  }

  void look_at(const std::int32_t* bin, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i, bin += t_.width) {
      const std::int32_t rows = bin[b_.count_channel];
      if (rows == 0) continue;
      count_ += rows;
      if (n_ - count_ < b_.least_rows) return;
      prefix_.add(bin, t_.hessian_channel);
      if (Shared) weight_ += bin[b_.weight_channel];
      if (count_ >= b_.least_rows) estimate(prefix_, weight_);
      if (n_missing_ == 0 || count_ + n_missing_ < b_.least_rows || n_ - count_ - n_missing_ < b_.least_rows) continue;
      estimate(prefix_ + missing_, weight_ + missing_weight_);
    }
  }

  void estimate(const Sums& left, std::int64_t weight) {
    Inverse inverse{};
    if (Shared) {
      const double left_weight = static_cast<double>(weight) * b_.shared_unit;
      const double right_weight = whole_weight_ - left_weight;
      if (b_.least_weight > 0 && (left_weight < b_.least_weight || right_weight < b_.least_weight)) return;
      inverse = inverse_of(left_weight, right_weight);
    }
    const float estimated = estimate_one(t_, total_, left, inverse);
    highest_ = estimated > highest_ ? estimated : highest_;
  }

  const BinsTile& b_;
  const ScanTile& t_;
  const Sums total_;
  const std::int32_t n_;
  const double whole_weight_;
  Sums missing_;
  std::int32_t n_missing_ = 0;
  std::int64_t missing_weight_ = 0;
  Sums prefix_;
  std::int32_t count_ = 0;
  std::int64_t weight_ = 0;
  float highest_ = 0.0f;
};

template <int V, bool Shared>
float highest_of_bins(const BinsTile& b) {
  return BinSearch<V, Shared>(b).highest();
}

float highest_estimate(const BinsTile& b) {
  const bool one = b.terms.n_outputs <= kFloats;
  if (b.shared) return one ? highest_of_bins<1, true>(b) : highest_of_bins<2, true>(b);
  return one ? highest_of_bins<1, false>(b) : highest_of_bins<2, false>(b);
}

}  // namespace

extern const EstimateKernels kEstimateKernels;
const EstimateKernels kEstimateKernels = {estimate, highest_estimate};

}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
