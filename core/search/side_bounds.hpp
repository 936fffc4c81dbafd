// What the candidates of a feature can still score, from what they scored in a node above.
//
// A split leaves the rows of a feature's most frequent bin on one side. The other side is some of the cells that a tile
// lists (table/visited_cells.hpp). When a node loses rows that have none of these cells, that side stays as it was, of
// each candidate; only what the node has is less. Of an output, let G and H be the sums of the node, g and h of that
// side, h <= w of all outputs, and M the least H + lambda of any. With S a bound on the sum of g^2 / (h + lambda), and
// P the sum of G^2 / (H + lambda), which is the score of the node, all outputs together score no more than
//
//   S + (sqrt(P M) + sqrt(S (w + lambda)))^2 / (M - w)
//
// since |G - g| <= |G| + |g|, H - h + lambda >= M - w, and a sum of squares is that of a length.
//
// What it buys: on wide sparse tables a node that loses a few rows to its sibling is searched by some of its features,
// not by all; a third of a fit of 10,000 x 20,000 (docs/performance.md).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/estimate.hpp"

namespace polyleaf {

// Of the sides of a feature's candidates that do not hold its most frequent bin: no more than that. What is not known
// is larger than anything.
struct SideBound {
  static constexpr float kUnknown = std::numeric_limits<float>::max() / 4;  // bounds made of it are finite, too
  static constexpr float kNever = -kUnknown;                                // of a feature that may not be used

  float score = kUnknown;
  float gradient = 0.0f;
  float weight = 0.0f;
};

// Those of all features in tiles; null: they are not remembered.
struct SideArrays {
  float* score = nullptr;
  float* gradient = nullptr;
  float* weight = nullptr;

  SideArrays() = default;
  SideArrays(float* first, std::size_t n) : score(first), gradient(first + n), weight(first + 2 * n) {}
  static std::size_t size(std::size_t n) { return 3 * n; }

  bool any() const { return score != nullptr; }
  bool is_known(std::size_t at) const { return score[at] < SideBound::kUnknown; }
  void set(std::size_t at, const SideBound& side) const {
    score[at] = side.score;
    gradient[at] = side.gradient;
    weight[at] = side.weight;
  }
};

class SideBounds {
 public:
  // Of the node that a search is in; `error`: of an estimate, relative to it.
  SideBounds(const BinsTile& node, float error) : node_(node), error_(static_cast<double>(error)) {
    for (int j = 0; j < node.terms.n_outputs; ++j) {
      const double gradient = node.terms.totals[j], whole = weight(node.terms.totals, j) + lambda(j);
      own_ += static_cast<double>(node.terms.factor[j]) * gradient * gradient / whole;
      lightest_ = std::min(lightest_, whole);
      lambda_ = std::max(lambda_, lambda(j));
    }
    length_ = std::sqrt(own_);
  }

  // From the highest estimate of a feature's candidates, and its most frequent bin in the node.
  SideBound of_highest(float estimate, const std::int32_t* frequent) const {
    double most_weight = 0.0;
    for (int j = 0; j < node_.terms.n_outputs; ++j)
      most_weight = std::max(most_weight, weight(node_.terms.totals, j) - weight(frequent, j));
    const double most = (1.0 + 2.0 * error_) * static_cast<double>(estimate);
    // What the other side scores at least.
    const double rest = std::max(length_ - std::sqrt(most * (most_weight + lambda_) / lightest_), 0.0);
    const double score = std::max(most - (1.0 - error_) * rest * rest, 0.0);
    return {above(score), above(std::sqrt(score * (most_weight + lambda_))), above(most_weight)};
  }

  // What estimates of the candidates of some features are below, from the first one of these on; and the highest of
  // each kSidesTogether of them.
  void highest(const SideArrays& sides, std::size_t first, std::size_t n, float* out, float* out_together) const {
    const float own = above(length_ * std::sqrt(lightest_)), factor = above(1.0 + 2.0 * error_);
    const float lightest = static_cast<float>(lightest_ * (1.0 - kRounding));
    estimate_kernels().bound_sides({sides.score + first, sides.gradient + first, sides.weight + first, n, own, lightest,
                                    factor, out, out_together});
  }

 private:
  static constexpr double kRounding = 2e-6;  // of float32, several times

  static float above(double value) { return static_cast<float>(value * (1.0 + kRounding)); }
  double weight(const std::int32_t* sums, int output) const {
    if (node_.shared) return sums[node_.weight_channel] * node_.shared_unit;
    return sums[node_.terms.hessian_channel + output] * static_cast<double>(node_.terms.hessian_unit[output]);
  }
  double lambda(int output) const {
    return node_.shared ? node_.shared_lambda : static_cast<double>(node_.terms.lambda[output]);
  }

  const BinsTile& node_;
  const double error_;
  double own_ = 0.0;     // the score of the node
  double length_ = 0.0;  // its square root
  double lightest_ = std::numeric_limits<double>::max();
  double lambda_ = 0.0;  // the largest
};

}  // namespace polyleaf
