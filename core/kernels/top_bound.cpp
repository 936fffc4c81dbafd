#include "kernels/top_bound.hpp"

#include <cmath>

#include "kernels/output_sums.hpp"
#include "kernels/step_reader.hpp"

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

// A threshold is moved no more often than this: the bound is close then.
constexpr int kMostMoves = 6;

inline Floats excess_over(const Floats& terms, float threshold) {
  const Floats over = terms - threshold;
  return over > 0.0f ? over : Floats{};
}

inline int sum_integers(const SignedIntegers& v) {
  int sum = 0;
  for (int i = 0; i < kFloats; ++i) sum += v[i];
  return sum;
}

// The terms of one side of a candidate, or of both together, and bounds on the sum of the k largest.
class TopTerms {
 public:
  TopTerms(Floats* terms, std::size_t n_vectors, int k, float& threshold)
      : terms_(terms), n_vectors_(n_vectors), k_(static_cast<float>(k)), threshold_(threshold) {}

  float threshold() const { return threshold_; }
  float above() const { return above_; }
  float below() const { return below_; }
  bool settled() const { return settled_; }

  void put(std::size_t vector, const Floats& terms) {
    terms_[vector] = terms;
    excess_ += excess_over(terms, threshold_);
  }
  // To be called when all terms have been put.
  void bound() {
    sum_ = sum_floats(excess_);
    above_ = k_ * threshold_ + sum_;
    below_ = 0.0f;
    low_ = high_ = -1.0f;
    settled_ = false;
    excess_ = Floats{};
  }
  // Looks how many terms lie above the threshold, and moves it such that about k would if their tail were exponential.
  void move() {
    const auto n = static_cast<float>(count());
    const float known = n <= k_ ? sum_ + n * threshold_ : k_ * (threshold_ + sum_ / n);
    below_ = known > below_ ? known : below_;
    settled_ = n == k_ || below_ >= above_ * (1.0f - 1e-6f);
    if (settled_) return;
    (n > k_ ? low_ : high_) = threshold_;
    float next = n > 0 ? threshold_ + sum_ / n * std::log(n / k_) : 0.5f * threshold_;
    if (next <= low_ || (high_ >= 0 && next >= high_)) next = 0.5f * ((low_ > 0 ? low_ : 0.0f) + high_);
    threshold_ = next > 0 ? next : 0.0f;
    Floats excess = {0};
    for (std::size_t i = 0; i < n_vectors_; ++i) excess += excess_over(terms_[i], threshold_);
    sum_ = sum_floats(excess);
    const float bound = k_ * threshold_ + sum_;
    above_ = bound < above_ ? bound : above_;
  }

 private:
  int count() const {
    SignedIntegers n = {0};
    for (std::size_t i = 0; i < n_vectors_; ++i) n -= (SignedIntegers)(terms_[i] > threshold_);
    return sum_integers(n);
  }

  Floats* const terms_;
  const std::size_t n_vectors_;
  const float k_;
  float& threshold_;
  Floats excess_ = {0};
  float sum_ = 0.0f;  // of what lies above the threshold
  float above_ = 0.0f, below_ = 0.0f;
  float low_ = -1.0f, high_ = -1.0f;  // thresholds that were too low and too high; below 0: none was
  bool settled_ = false;
};

template <int V, bool Shared, bool Restricted>
class TopSearch {
 public:
  using Sums = OutputSums<V, Shared>;

  explicit TopSearch(TopBoundTile& t)
      : t_(t),
        prefix_(reinterpret_cast<Sums*>(t.room)),
        missing_(prefix_ + t.n_tiles),
        left_(room_for_terms(t, 0), t.n_tiles * V, t.k, t.threshold[0]),
        right_(room_for_terms(t, 1), t.n_tiles * V, t.k, t.threshold[1]) {
    static_assert(sizeof(Sums) * 2 + sizeof(Floats) * 2 * V <= top_bound_room(1) * sizeof(std::int32_t));
    for (std::size_t i = 0; i < t.n_tiles; ++i) {
      prefix_[i] = missing_[i] = Sums();
      StepReader(t.sums[i]).missing(
          [&](const std::int32_t* channels) { missing_[i].add(channels, t.terms[i].hessian_channel); });
    }
    set_bar(t.bar);
  }

  float highest() {
    for (std::size_t s = 0; s < t_.n_steps; ++s) {
      const Step& step = t_.steps[s];
      advance(step);
      if (step.right_allowed) look_at(2 * s, [&](std::size_t i) { return prefix_[i]; });
      if (step.left_allowed) look_at(2 * s + 1, [&](std::size_t i) { return prefix_[i] + missing_[i]; });
    }
    return highest_;
  }

 private:
  static Floats* room_for_terms(const TopBoundTile& t, std::size_t side) {
    return reinterpret_cast<Floats*>(reinterpret_cast<Sums*>(t.room) + 2 * t.n_tiles) + side * t.n_tiles * V;
  }

  void set_bar(float bar) {
    t_.bar = bar;
    least_ = bar > t_.smallest ? bar * (1.0f - t_.error) : 0.0f;
  }

  void advance(const Step& step) {
    if (t_.sums[0].histogram != nullptr) {
      for (std::size_t i = 0; i < t_.n_tiles; ++i) {
        const StepSums& sums = t_.sums[i];
        prefix_[i].add(sums.histogram + step.slot * static_cast<std::size_t>(sums.width), t_.terms[i].hessian_channel);
      }
      return;
    }
    for (; row_ < step.rows_end; ++row_)
      for (std::size_t i = 0; i < t_.n_tiles; ++i) {
        const StepSums& sums = t_.sums[i];
        prefix_[i].add(sums.payload + sums.order[row_] * static_cast<std::size_t>(sums.width),
                       t_.terms[i].hessian_channel);
      }
  }

  template <class Left>
  void look_at(std::size_t at, Left&& left) {
    Inverse inverse{};
    if (Shared) inverse = {static_cast<float>(t_.inverse_left[at]), static_cast<float>(t_.inverse_right[at])};
    for (std::size_t i = 0; i < t_.n_tiles; ++i)
      put_terms(i, left(i), Sums(t_.terms[i].totals, t_.terms[i].hessian_channel), inverse);
    left_.bound();
    if (!Restricted) right_.bound();
    for (int move = 0; move < kMostMoves && above() >= least_ && !settled(); ++move) {
      if (!left_.settled()) left_.move();
      if (!Restricted && !right_.settled()) right_.move();
      if (below() > t_.bar) set_bar(below());
    }
    t_.bound[at] = above();
    highest_ = above() > highest_ ? above() : highest_;
  }

  void put_terms(std::size_t tile, const Sums& left, const Sums& total, const Inverse& inverse) {
    const FloatTerms& t = t_.terms[tile];
    for (int v = 0; v < V; ++v) {
      const Floats factor = load_floats(t.factor + v * kFloats);
      const Floats gl = to_floats(left.gradient[v]);
      const Floats gr = to_floats(total.gradient[v] - left.gradient[v]);
      Floats of_left, of_right;
      if (Shared) {
        of_left = factor * gl * gl * inverse.left;
        of_right = factor * gr * gr * inverse.right;
      } else {
        const Floats unit = load_floats(t.hessian_unit + v * kFloats);
        const Floats lambda = load_floats(t.lambda + v * kFloats);
        const Floats dl = to_floats(left.hessian[v]) * unit + lambda;
        const Floats dr = to_floats(total.hessian[v] - left.hessian[v]) * unit + lambda;
        const Floats inverse_product = 1.0f / (dl * dr);
        of_left = factor * (gl * gl * dr * inverse_product);
        of_right = factor * (gr * gr * dl * inverse_product);
      }
      const std::size_t vector = tile * V + static_cast<std::size_t>(v);
      left_.put(vector, Restricted ? of_left + of_right : of_left);
      if (!Restricted) right_.put(vector, of_right);
    }
  }

  float above() const { return Restricted ? left_.above() : left_.above() + right_.above(); }
  float below() const { return Restricted ? left_.below() : left_.below() + right_.below(); }
  bool settled() const { return left_.settled() && (Restricted || right_.settled()); }

  TopBoundTile& t_;
  Sums* const prefix_;
  Sums* const missing_;
  TopTerms left_, right_;  // of both together, where restricted, in the first
  float least_ = 0.0f;     // bounds below cannot be the best
  float highest_ = 0.0f;
  std::uint32_t row_ = 0;
};

template <int V, bool Shared>
float bound_of(TopBoundTile& t) {
  return t.restricted ? TopSearch<V, Shared, true>(t).highest() : TopSearch<V, Shared, false>(t).highest();
}

float bound(TopBoundTile& t) {
  const bool one = t.terms[0].n_outputs <= kFloats;
  if (t.inverse_left != nullptr) return one ? bound_of<1, true>(t) : bound_of<2, true>(t);
  return one ? bound_of<1, false>(t) : bound_of<2, false>(t);
}

}  // namespace

extern const TopBoundKernels kTopBoundKernels;
const TopBoundKernels kTopBoundKernels = {bound};

}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
