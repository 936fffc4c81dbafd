// A bound on the scores of eight bins in a row, by which most of them are passed over; for files that are compiled once
// per instruction set.
//
// A score is convex in the gradient of a side. So no split behind any of the bins exceeds what the smallest and the
// largest sum after one of them give, with the least that either side can weigh: the left one after the first bin, the
// right one after the last.
//
// What it buys: a tenth of a round on wide tables of many bins (synth_d10, one output), little elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/output_sums.hpp"

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

template <int V, bool Shared>
class BinBounds {
 public:
  static constexpr std::size_t kTogether = 8;

  explicit BinBounds(const BinsOfNode<V, Shared>& node)
      : node_(node), worthwhile_(node.tile.bar > 0.0f && node.tile.n_bins >= kLeastBounded) {}

  // Goes past some bins if none of their candidates can come near the bar.
  bool pass(const std::int32_t* bin, std::size_t n, BinPrefix<V, Shared>& prefix) const {
    if (!worthwhile_) return false;
    BinPrefix<V, Shared> last = prefix;
    last.add(bin, node_.tile);
    const BinPrefix<V, Shared> first = last;
    SignedOutputs lowest[V], highest[V];
    for (int v = 0; v < V; ++v) lowest[v] = highest[v] = (SignedOutputs)last.sums.gradient[v];
    for (std::size_t i = 1; i < n; ++i) {
      last.add(bin + i * static_cast<std::size_t>(node_.tile.width), node_.tile);
      for (int v = 0; v < V; ++v) {
        const auto gradient = (SignedOutputs)last.sums.gradient[v];
        lowest[v] = gradient < lowest[v] ? gradient : lowest[v];
        highest[v] = gradient > highest[v] ? gradient : highest[v];
      }
    }
    if (!stay_below(first, last, lowest, highest)) return false;
    if (node_.n_missing > 0) {
      for (int v = 0; v < V; ++v) {
        lowest[v] = (SignedOutputs)((OutputIntegers)lowest[v] + node_.missing.gradient[v]);
        highest[v] = (SignedOutputs)((OutputIntegers)highest[v] + node_.missing.gradient[v]);
      }
      const BinPrefix<V, Shared> first_with = {first.sums + node_.missing, 0, first.weight + node_.missing_weight};
      const BinPrefix<V, Shared> last_with = {last.sums + node_.missing, 0, last.weight + node_.missing_weight};
      if (!stay_below(first_with, last_with, lowest, highest)) return false;
    }
    prefix = last;
    return true;
  }

 private:
  static constexpr std::size_t kLeastBounded = 32;  // few bins differ too much for a bound
  static constexpr float kFarBelow = 0.9999f;

  bool stay_below(const BinPrefix<V, Shared>& first, const BinPrefix<V, Shared>& last, const SignedOutputs* lowest,
                  const SignedOutputs* highest) const {
    const FloatTerms& t = node_.tile.terms;
    Inverse inverse{};
    if (Shared)
      inverse = node_.inverse_of(static_cast<double>(first.weight) * node_.tile.shared_unit,
                                 node_.whole_weight - static_cast<double>(last.weight) * node_.tile.shared_unit);
    OutputFloats sum = {0};
    for (int v = 0; v < V; ++v) {
      const OutputFloats factor = load_terms(t.factor + v * kOutputs);
      OutputFloats left, right;  // what squares of gradients are multiplied by
      if (Shared) {
        left = OutputFloats{} + inverse.left;
        right = OutputFloats{} + inverse.right;
      } else {
        const OutputFloats unit = load_terms(t.hessian_unit + v * kOutputs);
        const OutputFloats lambda = load_terms(t.lambda + v * kOutputs);
        right = to_floats(first.sums.hessian[v]) * unit + lambda;
        left = to_floats(node_.total.hessian[v] - last.sums.hessian[v]) * unit + lambda;
      }
      const auto term = [&](const SignedOutputs& of_left) {
        const OutputFloats gl = to_floats((OutputIntegers)of_left);
        const OutputFloats gr = to_floats(node_.total.gradient[v] - (OutputIntegers)of_left);
        return gl * gl * left + gr * gr * right;
      };
      const OutputFloats low = term(lowest[v]);
      const OutputFloats high = term(highest[v]);
      const OutputFloats larger = low > high ? low : high;
      sum += factor * (Shared ? larger : larger / (left * right));
    }
    return sum_outputs(sum) < kFarBelow * node_.tile.bar;
  }

  const BinsOfNode<V, Shared>& node_;
  const bool worthwhile_;
};

}  // namespace
}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
