// The highest estimate of a feature's candidates where outputs are few: bins stand side by side in vectors, which would
// be all but empty with outputs in them. For files that are compiled once per instruction set.
//
//   first bins:      g0 g1 ... count | g0 g1 ... count | ...    as the histogram has them
//   their prefixes:  g0 g0 g0 ...
//                    g1 g1 g1 ...
//                    count count count ...                      as they are scored
//
// What it buys: half of a round of one output (20,000 x 50, AVX-512), a quarter with AVX2.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/output_sums.hpp"

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

// With more outputs, vectors of outputs and bounds on several bins (bin_bounds.hpp) are the faster way.
#if defined(__AVX512F__)
constexpr int kFewOutputs = 4;
#elif defined(__AVX2__)
constexpr int kFewOutputs = 2;
#else
constexpr int kFewOutputs = 0;
#endif

template <int D, bool Shared>
class BinLanes {
 public:
  explicit BinLanes(const BinsTile& b)
      : b_(b), n_missing_(b.missing == nullptr ? 0 : b.missing[b.count_channel]), n_(b.terms.totals[b.count_channel]) {
    for (int c = 0; c < kSums; ++c) missing_[c] = b.missing == nullptr ? 0 : b.missing[channel(c)];
  }

  float highest() {
    const std::int32_t* bin = b_.bins;
    for (std::size_t first = 0; first < b_.n_bins && n_ - count_ >= b_.least_rows; first += kTogether) {
      const std::size_t n = b_.n_bins - first < kTogether ? b_.n_bins - first : kTogether;
      const std::size_t n_vectors = add(bin, n);
      for (std::size_t v = 0; v < n_vectors; ++v) {
        look_at(v, false);
        if (n_missing_ > 0) look_at(v, true);
      }
      bin += n * static_cast<std::size_t>(b_.width);
    }
    float most = 0.0f;
    for (int l = 0; l < kOutputs; ++l) most = highest_[l] > most ? highest_[l] : most;
    return most;
  }

 private:
  // Gradients, then Hessians or, where all outputs share one, the weight.
  static constexpr int kSums = Shared ? D + 1 : 2 * D;
  int channel(int c) const { return c < D ? c : Shared ? b_.weight_channel : b_.terms.hessian_channel + (c - D); }

  // Bins whose prefixes are taken before any is looked at: vectors of numbers just written would have to wait for them.
  static constexpr std::size_t kVectors = 4;
  static constexpr std::size_t kTogether = kVectors * static_cast<std::size_t>(kOutputs);

  // The prefixes of the next bins; what is left of the last vector repeats the last one. Returns how many vectors.
  std::size_t add(const std::int32_t* bin, std::size_t n) {
    const std::size_t n_vectors = (n + static_cast<std::size_t>(kOutputs) - 1) / static_cast<std::size_t>(kOutputs);
    for (std::size_t i = 0; i < n; ++i, bin += b_.width) {
      count_ += bin[b_.count_channel];
      counts_[i] = count_;
      for (int c = 0; c < kSums; ++c) lanes_[c][i] = prefix_[c] += static_cast<std::uint32_t>(bin[channel(c)]);
    }
    for (std::size_t i = n; i < n_vectors * static_cast<std::size_t>(kOutputs); ++i) {
      counts_[i] = count_;
      for (int c = 0; c < kSums; ++c) lanes_[c][i] = prefix_[c];
    }
    return n_vectors;
  }

  // A bin without rows of the node is the same candidate as the one before it, or none.
  void look_at(std::size_t v, bool with_missing) {
    const std::size_t at = v * static_cast<std::size_t>(kOutputs);
    auto count = (SignedOutputs)load_sums(counts_ + at);
    SignedOutputs allowed = (count > 0) & (n_ - count >= b_.least_rows);
    if (with_missing) count += n_missing_;
    allowed &= (count >= b_.least_rows) & (n_ - count >= b_.least_rows);
    const auto left = [&](int c) {
      const OutputIntegers sums = *reinterpret_cast<const OutputIntegers*>(lanes_[c] + at);
      return with_missing ? sums + static_cast<std::uint32_t>(missing_[c]) : sums;
    };
    const auto right = [&](int c) { return static_cast<std::uint32_t>(b_.terms.totals[channel(c)]) - left(c); };
    OutputFloats of_left = {0}, of_right = {0};
    for (int c = 0; c < D; ++c) {
      const OutputFloats gl = to_floats(left(c)), gr = to_floats(right(c));
      const float factor = b_.terms.factor[c];
      if (Shared) {
        of_left += factor * gl * gl;
        of_right += factor * gr * gr;
      } else {
        const float unit = b_.terms.hessian_unit[c], lambda = b_.terms.lambda[c];
        const OutputFloats dl = to_floats(left(D + c)) * unit + lambda, dr = to_floats(right(D + c)) * unit + lambda;
        of_left += factor * ((gl * gl * dr + gr * gr * dl) / (dl * dr));
      }
    }
    if (Shared) {
      const auto unit = static_cast<float>(b_.shared_unit), lambda = static_cast<float>(b_.shared_lambda);
      of_left = of_left / (to_floats(left(D)) * unit + lambda) + of_right / (to_floats(right(D)) * unit + lambda);
    }
    highest_ = (allowed & (SignedOutputs)(of_left > highest_)) != 0 ? of_left : highest_;
  }

  const BinsTile& b_;
  const std::int32_t n_missing_;
  const std::int32_t n_;
  std::int32_t missing_[kSums];
  std::int32_t count_ = 0;
  std::uint32_t prefix_[kSums] = {};
  std::int32_t counts_[kTogether];
  std::uint32_t lanes_[kSums][kTogether];
  OutputFloats highest_ = {};
};

// Of up to kFewOutputs.
template <bool Shared>
float highest_of_few_outputs(const BinsTile& b) {
  switch (b.terms.n_outputs) {
    case 1:
      return BinLanes<1, Shared>(b).highest();
    case 2:
      return BinLanes<2, Shared>(b).highest();
    case 3:
      return BinLanes<3, Shared>(b).highest();
    default:
      return BinLanes<4, Shared>(b).highest();
  }
}

}  // namespace
}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
