// Sums of the outputs of a tile in vectors, and the float32 estimate of a split's score; for files that are compiled
// once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/lanes.hpp"
#include "kernels/estimate.hpp"

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

// Outputs to a vector. Estimates decide about no bit, so that instruction sets may sum them in an order of their own;
// vectors that are wider than those of the processor go through memory.
#if defined(__AVX512F__)
constexpr int kOutputs = 16;
#else
constexpr int kOutputs = 8;
#endif
typedef float OutputFloats __attribute__((vector_size(kOutputs * 4), aligned(4), may_alias));
typedef std::uint32_t OutputIntegers __attribute__((vector_size(kOutputs * 4), aligned(4), may_alias));  // may wrap
typedef std::int32_t SignedOutputs __attribute__((vector_size(kOutputs * 4), aligned(4), may_alias));

// Reads of whole vectors run past the channels that count; a factor of 0 makes them nothing.
inline OutputIntegers load_sums(const std::int32_t* from) { return *reinterpret_cast<const OutputIntegers*>(from); }
inline OutputFloats load_terms(const float* from) { return *reinterpret_cast<const OutputFloats*>(from); }
inline OutputFloats to_floats(const OutputIntegers& v) {
  return __builtin_convertvector((SignedOutputs)v, OutputFloats);
}

inline float sum_outputs(const OutputFloats& v) {
  typedef float Half __attribute__((vector_size(32)));
  typedef float Quarter __attribute__((vector_size(16)));
  Half halves[kOutputs / 8];
  __builtin_memcpy(halves, &v, sizeof halves);
  const Half half = kOutputs == 8 ? halves[0] : halves[0] + halves[kOutputs / 8 - 1];
  Quarter quarters[2];
  __builtin_memcpy(quarters, &half, sizeof quarters);
  const Quarter quarter = quarters[0] + quarters[1];
  return (quarter[0] + quarter[1]) + (quarter[2] + quarter[3]);
}

// Calls body with the number of vectors that the outputs of a tile take, as a type.
template <class Body>
auto with_vectors_of(int n_outputs, Body&& body) {
  if constexpr (kOutputs == 8) {  // a tile has up to 32
    if (n_outputs > 3 * kOutputs) return body(std::integral_constant<int, 4>());
    if (n_outputs > 2 * kOutputs) return body(std::integral_constant<int, 3>());
  }
  if (n_outputs > kOutputs) return body(std::integral_constant<int, 2>());
  return body(std::integral_constant<int, 1>());
}

// Gradients of up to V vectors of outputs and, unless they share one, their Hessians.
template <int V, bool Shared>
struct OutputSums {
  OutputIntegers gradient[V];
  OutputIntegers hessian[Shared ? 1 : V];

  OutputSums() : gradient{}, hessian{} {}
  OutputSums(const std::int32_t* channels, int hessian_channel) : OutputSums() { add(channels, hessian_channel); }
  void add(const std::int32_t* channels, int hessian_channel) {
    for (int v = 0; v < V; ++v) gradient[v] += load_sums(channels + v * kOutputs);
    if (!Shared)
      for (int v = 0; v < V; ++v) hessian[v] += load_sums(channels + hessian_channel + v * kOutputs);
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
inline float estimate_one(const FloatTerms& t, const OutputSums<V, Shared>& total, const OutputSums<V, Shared>& left,
                          const Inverse& inverse) {
  OutputFloats sum_left = {0};
  OutputFloats sum_right = {0};
  for (int v = 0; v < V; ++v) {
    const OutputFloats factor = load_terms(t.factor + v * kOutputs);
    const OutputFloats gl = to_floats(left.gradient[v]);
    const OutputFloats gr = to_floats(total.gradient[v] - left.gradient[v]);
    if (Shared) {
      sum_left += factor * gl * gl;
      sum_right += factor * gr * gr;
    } else {
      const OutputFloats unit = load_terms(t.hessian_unit + v * kOutputs);
      const OutputFloats lambda = load_terms(t.lambda + v * kOutputs);
      const OutputFloats dl = to_floats(left.hessian[v]) * unit + lambda;
      const OutputFloats dr = to_floats(total.hessian[v] - left.hessian[v]) * unit + lambda;
      sum_left += factor * ((gl * gl * dr + gr * gr * dl) / (dl * dr));
    }
  }
  if (!Shared) return sum_outputs(sum_left);
  return sum_outputs(sum_left * inverse.left + sum_right * inverse.right);
}

// A node as the search through the bins of one of its features sees it.
template <int V, bool Shared>
struct BinsOfNode {
  const BinsTile& tile;
  const OutputSums<V, Shared> total;
  const double whole_weight;
  OutputSums<V, Shared> missing;  // of the feature
  std::int32_t n_missing = 0;
  std::int64_t missing_weight = 0;

  explicit BinsOfNode(const BinsTile& b)
      : tile(b),
        total(b.terms.totals, b.terms.hessian_channel),
        whole_weight(b.terms.totals[b.weight_channel] * b.shared_unit) {
    if (b.missing == nullptr) return;
    missing.add(b.missing, b.terms.hessian_channel);
    n_missing = b.missing[b.count_channel];
    missing_weight = b.missing[b.weight_channel];
  }

  Inverse inverse_of(double left_weight, double right_weight) const {
    return {1.0f / static_cast<float>(left_weight + tile.shared_lambda),
            1.0f / static_cast<float>(right_weight + tile.shared_lambda)};
  }
};

// The sums of the first bins of a feature.
template <int V, bool Shared>
struct BinPrefix {
  OutputSums<V, Shared> sums;
  std::int32_t count = 0;
  std::int64_t weight = 0;

  void add(const std::int32_t* bin, const BinsTile& b) {
    sums.add(bin, b.terms.hessian_channel);
    count += bin[b.count_channel];
    if (Shared) weight += bin[b.weight_channel];
  }
};

}  // namespace
}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
