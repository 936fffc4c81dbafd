#include "kernels/estimate.hpp"

#include "kernels/bin_bounds.hpp"
#include "kernels/bin_lanes.hpp"
#include "kernels/output_sums.hpp"
#include "kernels/step_reader.hpp"
#include "rules/acceptance.hpp"

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

template <int V, bool Shared>
float estimate_steps(const EstimateTile& t) {
  const int hessian_channel = t.terms.hessian_channel;
  const OutputSums<V, Shared> total(t.terms.totals, hessian_channel);
  StepReader reader(t.sums);
  OutputSums<V, Shared> missing;
  reader.missing([&](const std::int32_t* channels) { missing.add(channels, hessian_channel); });
  OutputSums<V, Shared> prefix;
  float highest = 0.0f;
  const auto add = [&](const OutputSums<V, Shared>& left, std::size_t at) {
    Inverse inverse{};
    if (Shared) inverse = {static_cast<float>(t.inverse_left[at]), static_cast<float>(t.inverse_right[at])};
    const float estimated = t.estimated[at] + estimate_one(t.terms, total, left, inverse);
    t.estimated[at] = estimated;
    highest = estimated > highest ? estimated : highest;
  };
  for (std::size_t s = 0; s < t.n_steps; ++s) {
    const Step& step = t.steps[s];
    reader.next(step, [&](const std::int32_t* channels) { prefix.add(channels, hessian_channel); });
    if (step.right_allowed) add(prefix, 2 * s);
    if (!step.left_allowed) continue;
    add(prefix + missing, 2 * s + 1);
  }
  return highest;
}

float estimate(const EstimateTile& t) {
  return with_vectors_of(t.terms.n_outputs, [&](auto v) {
    return t.inverse_left != nullptr ? estimate_steps<decltype(v)::value, true>(t)
                                     : estimate_steps<decltype(v)::value, false>(t);
  });
}

// The candidates of a feature, bin by bin.
template <int V, bool Shared>
class BinSearch {
 public:
  explicit BinSearch(const BinsTile& b) : b_(b), node_(b), bounds_(node_), n_(b.terms.totals[b.count_channel]) {}

  float highest() {
    constexpr std::size_t kTogether = BinBounds<V, Shared>::kTogether;
    const std::int32_t* bin = b_.bins;
    for (std::size_t first = 0; first < b_.n_bins && n_ - prefix_.count >= b_.least_rows; first += kTogether) {
      const std::size_t n = b_.n_bins - first < kTogether ? b_.n_bins - first : kTogether;
      if (!bounds_.pass(bin, n, prefix_)) look_at(bin, n);
      bin += n * static_cast<std::size_t>(b_.width);
    }
    return highest_;
  }

 private:
  void look_at(const std::int32_t* bin, std::size_t n) {
    const std::int32_t n_missing = node_.n_missing;
    for (std::size_t i = 0; i < n; ++i, bin += b_.width) {
      if (bin[b_.count_channel] == 0) continue;
      prefix_.add(bin, b_);
      const std::int32_t n_left = prefix_.count;
      if (n_ - n_left < b_.least_rows) return;
      if (n_left >= b_.least_rows) estimate(prefix_.sums, prefix_.weight);
      if (n_missing == 0 || !large_enough(n_left + n_missing, n_, b_.least_rows)) continue;
      estimate(prefix_.sums + node_.missing, prefix_.weight + node_.missing_weight);
    }
  }

  void estimate(const OutputSums<V, Shared>& left, std::int64_t weight) {
    Inverse inverse{};
    if (Shared) {
      const double left_weight = static_cast<double>(weight) * b_.shared_unit;
      if (!heavy_enough(left_weight, node_.whole_weight, b_.least_weight)) return;
      inverse = node_.inverse_of(left_weight, node_.whole_weight - left_weight);
    }
    const float estimated = estimate_one(b_.terms, node_.total, left, inverse);
    highest_ = estimated > highest_ ? estimated : highest_;
  }

  const BinsTile& b_;
  const BinsOfNode<V, Shared> node_;
  const BinBounds<V, Shared> bounds_;
  const std::int32_t n_;
  BinPrefix<V, Shared> prefix_;
  float highest_ = 0.0f;
};

template <int V, bool Shared>
float highest_of_bins(const BinsTile& b) {
  return BinSearch<V, Shared>(b).highest();
}

float highest_estimate(const BinsTile& b) {
  const bool any_weight = !b.shared || b.least_weight <= 0;  // float32 does not tell which sides are heavy enough
  if (b.terms.n_outputs <= kFewOutputs && any_weight)
    return b.shared ? highest_of_few_outputs<true>(b) : highest_of_few_outputs<false>(b);
  return with_vectors_of(b.terms.n_outputs, [&](auto v) {
    return b.shared ? highest_of_bins<decltype(v)::value, true>(b) : highest_of_bins<decltype(v)::value, false>(b);
  });
}

typedef float Sides __attribute__((vector_size(64), aligned(4), may_alias));
constexpr std::size_t kSides = 16;  // of a vector

inline Sides load_sides(const float* from) { return *reinterpret_cast<const Sides*>(from); }

// The last ones are too few for a vector.
void bound_sides(const SidesTile& s) {
  constexpr float kLowest = -3.4e38f;
  for (std::size_t first = 0; first < s.n; first += kSidesTogether) {
    const std::size_t end = s.n - first < kSidesTogether ? s.n : first + kSidesTogether;
    Sides most = Sides{} + kLowest;
    std::size_t i = first;
    for (; i + kSides <= end; i += kSides) {
      const Sides both = load_sides(s.gradient + i) + s.own, rest = s.lightest - load_sides(s.weight + i);
      const Sides divisor = rest > Sides{} ? rest : Sides{} + kNoWeight;
      const Sides bound = (load_sides(s.score + i) + both * both / divisor) * s.factor;
      *reinterpret_cast<Sides*>(s.highest + i) = bound;
      most = bound > most ? bound : most;
    }
    float highest = kLowest;
    for (std::size_t l = 0; l < kSides; ++l) highest = most[l] > highest ? most[l] : highest;
    for (; i < end; ++i) {
      const float both = s.gradient[i] + s.own, rest = s.lightest - s.weight[i];
      s.highest[i] = (s.score[i] + both * both / (rest > 0.0f ? rest : kNoWeight)) * s.factor;
      highest = s.highest[i] > highest ? s.highest[i] : highest;
    }
    s.highest_of_together[first / kSidesTogether] = highest;
  }
}

template <int V, bool Ratios>
void widen_outputs(const OutputRanges& r) {
  SignedOutputs lowest[V], highest[V];
  OutputFloats ratio[V] = {};
  for (int v = 0; v < V; ++v) {
    lowest[v] = (SignedOutputs)load_sums(r.lowest + v * kOutputs);
    highest[v] = (SignedOutputs)load_sums(r.highest + v * kOutputs);
    if (Ratios) ratio[v] = load_terms(r.ratio + v * kOutputs);
  }
  for (std::size_t i = 0; i < r.n_rows; ++i) {
    const std::int32_t* row = r.payload + r.places[i] * static_cast<std::size_t>(r.width);
    for (int v = 0; v < V; ++v) {
      const SignedOutputs gradient = (SignedOutputs)load_sums(row + v * kOutputs);
      lowest[v] = gradient < lowest[v] ? gradient : lowest[v];
      highest[v] = gradient > highest[v] ? gradient : highest[v];
      if (!Ratios) continue;
      const OutputFloats of_row = __builtin_convertvector(gradient, OutputFloats);
      const OutputFloats magnitude = of_row < 0.0f ? -of_row : of_row;
      const OutputFloats hessian = to_floats(load_sums(row + r.hessian_channel + v * kOutputs));
      const OutputFloats quotient = hessian / (magnitude > 1.0f ? magnitude : OutputFloats{} + 1.0f);
      ratio[v] = quotient < ratio[v] ? quotient : ratio[v];
    }
  }
  for (int j = 0; j < r.n_outputs; ++j) {  // no further: what comes next is of other outputs
    r.lowest[j] = lowest[j / kOutputs][j % kOutputs];
    r.highest[j] = highest[j / kOutputs][j % kOutputs];
    if (Ratios) r.ratio[j] = ratio[j / kOutputs][j % kOutputs];
  }
}

void widen(const OutputRanges& r) {
  with_vectors_of(r.n_outputs, [&](auto v) {
    r.ratio != nullptr ? widen_outputs<decltype(v)::value, true>(r) : widen_outputs<decltype(v)::value, false>(r);
  });
}

}  // namespace

extern const EstimateKernels kEstimateKernels;
const EstimateKernels kEstimateKernels = {estimate, highest_estimate, bound_sides, widen, kFewOutputs};

}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
