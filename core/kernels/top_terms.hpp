// Bounds on the sum of the k largest of some float32 terms (kernels/top_bound.hpp), for files that are compiled once
// per instruction set.
#pragma once

#include <cmath>
#include <cstddef>

#include "kernels/output_sums.hpp"

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

// A threshold is moved no more often than this: the bound is close then.
constexpr int kMostMoves = 6;

inline OutputFloats excess_over(const OutputFloats& terms, float threshold) {
  const OutputFloats over = terms - threshold;
  return over > 0.0f ? over : OutputFloats{};
}

inline int sum_integers(const SignedOutputs& v) {
  int sum = 0;
  for (int i = 0; i < kOutputs; ++i) sum += v[i];
  return sum;
}

// Bounds on the sum of the k largest terms of one side of a candidate, or of both together.
class TopTerms {
 public:
  // Terms that are not given lie at or below `lowest`, below which the threshold is not moved.
  TopTerms(const OutputFloats* terms, std::size_t n_vectors, int k, float& threshold, float lowest = 0.0f)
      : terms_(terms), n_vectors_(n_vectors), k_(static_cast<float>(k)), threshold_(threshold), lowest_(lowest) {}

  float threshold() const { return threshold_; }
  float above() const { return above_; }
  float below() const { return below_; }
  bool settled() const { return settled_; }
  // The highest threshold that was seen to have k terms above it; below 0: none was.
  float passed() const { return passed_; }

  // Begins with new terms, of which so much lies above the threshold.
  void begin(float sum) {
    sum_ = sum;
    above_ = k_ * threshold_ + sum;
    below_ = 0.0f;
    low_ = high_ = passed_ = -1.0f;
    settled_ = false;
  }
  // Looks how many terms lie above the threshold, and moves it such that about k would if their tail were exponential.
  void move() {
    const auto n = static_cast<float>(count());
    const float known = n <= k_ ? sum_ + n * threshold_ : k_ * (threshold_ + sum_ / n);
    below_ = known > below_ ? known : below_;
    if (n >= k_ && threshold_ > passed_) passed_ = threshold_;
    settled_ = n == k_ || below_ >= above_ * (1.0f - 1e-6f) || (n < k_ && threshold_ <= lowest_);
    if (settled_) return;
    (n > k_ ? low_ : high_) = threshold_;
    float next = n > 0 ? threshold_ + sum_ / n * std::log(n / k_) : 0.5f * threshold_;
    if (next <= low_ || (high_ >= 0 && next >= high_)) next = 0.5f * ((low_ > 0 ? low_ : 0.0f) + high_);
    threshold_ = next > lowest_ ? next : lowest_;
    OutputFloats excess = {0};
    for (std::size_t i = 0; i < n_vectors_; ++i) excess += excess_over(terms_[i], threshold_);
    sum_ = sum_outputs(excess);
    const float bound = k_ * threshold_ + sum_;
    above_ = bound < above_ ? bound : above_;
  }

 private:
  int count() const {
    SignedOutputs n = {0};
    for (std::size_t i = 0; i < n_vectors_; ++i) n -= (SignedOutputs)(terms_[i] > threshold_);
    return sum_integers(n);
  }

  const OutputFloats* const terms_;
  const std::size_t n_vectors_;
  const float k_;
  float& threshold_;
  const float lowest_;
  float sum_ = 0.0f;  // of what lies above the threshold
  float above_ = 0.0f, below_ = 0.0f;
  float passed_ = -1.0f;
  float low_ = -1.0f, high_ = -1.0f;  // thresholds that were too low and too high; below 0: none was
  bool settled_ = false;
};

}  // namespace
}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
