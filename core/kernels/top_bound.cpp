#include "kernels/top_bound.hpp"

#include <initializer_list>

#include "kernels/output_sums.hpp"
#include "kernels/step_reader.hpp"
#include "kernels/top_terms.hpp"

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

// Terms of the outputs of one vector.
struct SideTerms {
  OutputFloats left;
  OutputFloats right;
};

// Left to itself, the compiler calls it from loops of few outputs.
template <int V, bool Shared>
__attribute__((always_inline)) inline SideTerms side_terms(const FloatTerms& t, const OutputSums<V, Shared>& left,
                                                           int v, const Inverse& inverse) {
  const OutputFloats factor = load_terms(t.factor + v * kOutputs);
  const OutputFloats gl = to_floats(left.gradient[v]);
  const OutputFloats gr = to_floats(load_sums(t.totals + v * kOutputs) - left.gradient[v]);
  if (Shared) return {factor * gl * gl * inverse.left, factor * gr * gr * inverse.right};
  const OutputFloats unit = load_terms(t.hessian_unit + v * kOutputs);
  const OutputFloats lambda = load_terms(t.lambda + v * kOutputs);
  const OutputIntegers total = load_sums(t.totals + t.hessian_channel + v * kOutputs);
  const OutputFloats dl = to_floats(left.hessian[v]) * unit + lambda;
  const OutputFloats dr = to_floats(total - left.hessian[v]) * unit + lambda;
  const OutputFloats inverse_product = 1.0f / (dl * dr);
  return {factor * (gl * gl * dr * inverse_product), factor * (gr * gr * dl * inverse_product)};
}

// Of both sides of a candidate.
struct Thresholds {
  float left;
  float right;
};

// In proportion to the sides, whose mean left share this is.
inline Thresholds thresholds_of(const float (&of_node)[2], float first_share, float last_share) {
  const float share = 0.5f * (first_share + last_share);
  return {of_node[0] * share, of_node[1] * (1.0f - share)};
}

// The lowest and highest sums of gradients after some steps in a row, and the sums after the first and the last.
template <int V, bool Shared>
struct StepRange {
  OutputSums<V, Shared> first, last;
  SignedOutputs lowest[V], highest[V];

  void begin(const OutputSums<V, Shared>& sums) {
    first = last = sums;
    for (int v = 0; v < V; ++v) lowest[v] = highest[v] = (SignedOutputs)sums.gradient[v];
  }
  void take() {
    for (int v = 0; v < V; ++v) {
      const auto gradient = (SignedOutputs)last.gradient[v];
      lowest[v] = gradient < lowest[v] ? gradient : lowest[v];
      highest[v] = gradient > highest[v] ? gradient : highest[v];
    }
  }
  void add(const OutputSums<V, Shared>& missing) {
    first = first + missing;
    last = last + missing;
    for (int v = 0; v < V; ++v) {
      lowest[v] = (SignedOutputs)((OutputIntegers)lowest[v] + missing.gradient[v]);
      highest[v] = (SignedOutputs)((OutputIntegers)highest[v] + missing.gradient[v]);
    }
  }
};

inline OutputFloats larger_of(const OutputFloats& a, const OutputFloats& b) { return a > b ? a : b; }

// Both terms, and what lies above a threshold, are convex in the sums of gradient and Hessian: the highest is at a
// corner, with the lowest or the highest gradient and the Hessian after the first step or after the last.
template <int V, bool Restricted>
inline OutputFloats excess_at_corners(const FloatTerms& t, const StepRange<V, true>& range, int v,
                                      const Inverse (&inverse)[2], const Thresholds& threshold) {
  const OutputFloats factor = load_terms(t.factor + v * kOutputs);
  const OutputIntegers total = load_sums(t.totals + v * kOutputs);
  OutputFloats largest{};
  for (const SignedOutputs* gradient : {&range.lowest[v], &range.highest[v]}) {
    const OutputFloats gl = to_floats((OutputIntegers)*gradient), gr = to_floats(total - (OutputIntegers)*gradient);
    const OutputFloats of_left = factor * gl * gl, of_right = factor * gr * gr;
    for (const Inverse& one : inverse) {
      const OutputFloats left = of_left * one.left, right = of_right * one.right;
      largest =
          larger_of(largest, Restricted ? excess_over(left + right, threshold.left)
                                        : excess_over(left, threshold.left) + excess_over(right, threshold.right));
    }
  }
  return largest;
}

// With a Hessian of each output, each side has the smallest it can have (kernels/bin_bounds.hpp): corners would take a
// division more.
template <int V, bool Restricted>
inline OutputFloats excess_of_sides(const FloatTerms& t, const StepRange<V, false>& range, int v,
                                    const Thresholds& threshold) {
  const OutputIntegers total = load_sums(t.totals + v * kOutputs);
  const OutputIntegers hessian = load_sums(t.totals + t.hessian_channel + v * kOutputs);
  const OutputFloats unit = load_terms(t.hessian_unit + v * kOutputs);
  const OutputFloats lambda = load_terms(t.lambda + v * kOutputs);
  const OutputFloats right = to_floats(range.first.hessian[v]) * unit + lambda;
  const OutputFloats left = to_floats(hessian - range.last.hessian[v]) * unit + lambda;
  const OutputFloats scale = load_terms(t.factor + v * kOutputs) * (1.0f / (left * right));
  const auto lowest = (OutputIntegers)range.lowest[v];
  const auto highest = (OutputIntegers)range.highest[v];
  const OutputFloats low = to_floats(lowest), low_rest = to_floats(total - lowest);
  const OutputFloats high = to_floats(highest), high_rest = to_floats(total - highest);
  if (Restricted)
    return excess_over(scale * larger_of(low * low * left + low_rest * low_rest * right,
                                         high * high * left + high_rest * high_rest * right),
                       threshold.left);
  return excess_over(scale * (larger_of(low * low, high * high) * left), threshold.left) +
         excess_over(scale * (larger_of(low_rest * low_rest, high_rest * high_rest) * right), threshold.right);
}

// No less than what lies above the thresholds after any of the steps.
template <int V, bool Shared, bool Restricted>
inline OutputFloats largest_excess(const FloatTerms& t, const StepRange<V, Shared>& range, int v,
                                   const Inverse (&inverse)[2], const Thresholds& threshold) {
  if constexpr (Shared)
    return excess_at_corners<V, Restricted>(t, range, v, inverse, threshold);
  else
    return excess_of_sides<V, Restricted>(t, range, v, threshold);
}

// What lies above the thresholds of candidates, one tile of outputs.
template <int V, bool Shared, bool Restricted>
class ExcessSum {
 public:
  using Sums = OutputSums<V, Shared>;

  explicit ExcessSum(const ExcessTile& t) : t_(t), reader_(t.sums), hessian_channel_(t.terms.hessian_channel) {
    reader_.missing([&](const std::int32_t* channels) { missing_.add(channels, hessian_channel_); });
  }

  void one_by_one() {
    for (std::size_t s = 0; s < t_.n_steps; ++s) {
      const Step& step = t_.steps[s];
      next(step, prefix_);
      if (step.right_allowed) add(2 * s, prefix_);
      if (step.left_allowed) add(2 * s + 1, prefix_ + missing_);
    }
  }

  void together() {
    for (std::size_t first = 0; first < t_.n_steps; first += kStepsTogether) {
      const std::size_t end = first + kStepsTogether < t_.n_steps ? first + kStepsTogether : t_.n_steps;
      StepRange<V, Shared> range;
      next(t_.steps[first], prefix_);
      range.begin(prefix_);
      bool with_missing = t_.steps[first].left_allowed;
      for (std::size_t s = first + 1; s < end; ++s) with_missing |= t_.steps[s].left_allowed;
      take_steps(first + 1, end, range);
      prefix_ = range.last;
      for (std::size_t side = 0; side < (with_missing ? 2 : 1); ++side) {
        if (side == 1) range.add(missing_);
        add(2 * first + side, 2 * (end - 1) + side, range);
      }
    }
  }

 private:
  void next(const Step& step, Sums& sums) {
    reader_.next(step, [&](const std::int32_t* channels) { sums.add(channels, hessian_channel_); });
  }

  // Where steps are rows, those of one step are taken one by one, too: that bounds no less, and there are no short
  // loops whose ends no processor foresees.
  void take_steps(std::size_t first, std::size_t end, StepRange<V, Shared>& range) {
    if (first == end) return;
    const auto take = [&](const std::int32_t* channels) {
      range.last.add(channels, hessian_channel_);
      range.take();
    };
    if (reader_.reads_rows()) return reader_.each_row(t_.steps[end - 1], take);
    for (std::size_t s = first; s < end; ++s) reader_.next(t_.steps[s], take);
  }

  Inverse inverse(std::size_t at) const {
    if (!Shared) return {};
    return {static_cast<float>(t_.inverse_left[at]), static_cast<float>(t_.inverse_right[at])};
  }

  Thresholds thresholds(std::size_t first, std::size_t last) const {
    if (Restricted || t_.left_share == nullptr) return {t_.threshold[0], t_.threshold[1]};
    return thresholds_of(t_.threshold, t_.left_share[first], t_.left_share[last]);
  }

  void add(std::size_t at, const Sums& left) {
    const Inverse inverses = inverse(at);
    const Thresholds threshold = thresholds(at, at);
    OutputFloats excess = {0};
    for (int v = 0; v < V; ++v) {
      const SideTerms of = side_terms<V, Shared>(t_.terms, left, v, inverses);
      excess += excess_over(Restricted ? of.left + of.right : of.left, threshold.left);
      if (!Restricted) excess += excess_over(of.right, threshold.right);
    }
    t_.excess[at] += sum_outputs(excess);
  }

  void add(std::size_t at, std::size_t last, const StepRange<V, Shared>& range) {
    const Inverse inverses[2] = {inverse(at), inverse(last)};
    const Thresholds threshold = thresholds(at, last);
    OutputFloats excess = {0};
    for (int v = 0; v < V; ++v)
      excess += largest_excess<V, Shared, Restricted>(t_.terms, range, v, inverses, threshold);
    t_.excess[at] += sum_outputs(excess);
  }

  const ExcessTile& t_;
  StepReader reader_;
  const int hessian_channel_;
  Sums prefix_, missing_;
};

template <int V, bool Shared>
void excess_of(const ExcessTile& t) {
  if (t.restricted) {
    ExcessSum<V, Shared, true> sum(t);
    t.together ? sum.together() : sum.one_by_one();
  } else {
    ExcessSum<V, Shared, false> sum(t);
    t.together ? sum.together() : sum.one_by_one();
  }
}

void excess(const ExcessTile& t) {
  with_vectors_of(t.terms.n_outputs, [&](auto v) {
    t.inverse_left != nullptr ? excess_of<decltype(v)::value, true>(t) : excess_of<decltype(v)::value, false>(t);
  });
}

// What of the terms of both sides lies above the thresholds, lane by lane.
using Excess = SideTerms;

template <int V, bool Shared, bool Restricted>
class TopSearch {
 public:
  using Sums = OutputSums<V, Shared>;

  explicit TopSearch(TopBoundTile& t)
      : t_(t),
        prefix_(reinterpret_cast<Sums*>(t.room)),
        missing_(prefix_ + t.n_tiles),
        of_step_(missing_ + t.n_tiles),
        left_terms_(reinterpret_cast<OutputFloats*>(of_step_ + t.n_tiles * kStepsTogether)),
        right_terms_(left_terms_ + t.n_tiles * V),
        left_(left_terms_, t.n_tiles * V, t.k, threshold_.left),
        right_(right_terms_, t.n_tiles * V, t.k, threshold_.right) {
    static_assert(sizeof(Sums) * (2 + kStepsTogether) + sizeof(OutputFloats) * 2 * V <=
                  top_bound_room(1) * sizeof(std::int32_t));
    for (std::size_t i = 0; i < t.n_tiles; ++i) {
      prefix_[i] = missing_[i] = Sums();
      StepReader(t.sums[i]).missing(
          [&](const std::int32_t* channels) { missing_[i].add(channels, t.terms[i].hessian_channel); });
    }
    set_bar(t.bar);
  }

  void settle() { t_.n_tiles == 1 ? settle_in_one_tile() : settle_in_tiles(); }

 private:
  void settle_in_one_tile() {
    StepReader reader(t_.sums[0]);
    Sums left;
    for (std::size_t s = 0; s < t_.n_steps; ++s) {
      reader.next(t_.steps[s], [&](const std::int32_t* channels) { left.add(channels, t_.terms[0].hessian_channel); });
      if (is_open(2 * s)) look_at(2 * s, [&](std::size_t) { return left; });
      if (is_open(2 * s + 1)) look_at(2 * s + 1, [&](std::size_t) { return left + missing_[0]; });
    }
  }

  void settle_in_tiles() {
    for (std::size_t first = 0; first < t_.n_steps; first += kStepsTogether) {
      const std::size_t end = first + kStepsTogether < t_.n_steps ? first + kStepsTogether : t_.n_steps;
      bool any_open = false;
      for (std::size_t s = first; s < end; ++s) any_open |= open_[s - first] = is_open(2 * s) || is_open(2 * s + 1);
      for (std::size_t i = 0; i < t_.n_tiles; ++i)
        any_open ? add_steps<true>(first, end, i) : add_steps<false>(first, end, i);
      for (std::size_t s = first; any_open && s < end; ++s) {
        const Sums* const left = of_step_ + (s - first) * t_.n_tiles;
        if (is_open(2 * s)) look_at(2 * s, [&](std::size_t i) { return left[i]; });
        if (is_open(2 * s + 1)) look_at(2 * s + 1, [&](std::size_t i) { return left[i] + missing_[i]; });
      }
    }
  }

  void set_bar(float bar) {
    t_.bar = bar;
    least_ = bar > t_.smallest ? bar * (1.0f - t_.error) : 0.0f;
  }

  void raise_bar(float bar, std::size_t at) {
    set_bar(bar);
    tell_thresholds(at, t_.best_threshold);
    if (!Restricted) t_.best_share = t_.left_share[at];
  }

  // Those of the candidate before this one suit it, too, if they grow with the sides.
  void take_thresholds(std::size_t at) {
    threshold_ = {t_.threshold[0], t_.threshold[1]};
    if (!Restricted) threshold_ = thresholds_of(t_.threshold, t_.left_share[at], t_.left_share[at]);
  }
  void tell_thresholds(std::size_t at, float (&threshold)[2]) const {
    const float share = Restricted ? 1.0f : t_.left_share[at];
    threshold[0] = threshold_.left / share;
    if (!Restricted) threshold[1] = threshold_.right / (1.0f - share);
  }

  bool is_open(std::size_t at) const {
    const Step& step = t_.steps[at / 2];
    return (at % 2 == 0 ? step.right_allowed : step.left_allowed) && t_.bound[at] >= least_;
  }

  // Goes on to the last of some steps. If wanted, the sums after open ones are kept.
  template <bool Kept>
  void add_steps(std::size_t first, std::size_t end, std::size_t tile) {
    const int hessian_channel = t_.terms[tile].hessian_channel;
    StepReader reader(t_.sums[tile], first == 0 ? 0 : t_.steps[first - 1].rows_end);
    Sums sums = prefix_[tile];
    for (std::size_t s = first; s < end; ++s) {
      reader.next(t_.steps[s], [&](const std::int32_t* channels) { sums.add(channels, hessian_channel); });
      if (Kept && open_[s - first]) of_step_[(s - first) * t_.n_tiles + tile] = sums;
    }
    prefix_[tile] = sums;
  }

  template <class Left>
  void look_at(std::size_t at, Left&& left) {
    take_thresholds(at);
    const Excess excess = put_terms(at, left);
    t_.bound[at] = static_cast<float>(t_.k) * (threshold_.left + (Restricted ? 0.0f : threshold_.right)) +
                   sum_outputs(Restricted ? excess.left : excess.left + excess.right);
    if (t_.bound[at] >= least_) move_thresholds(at, excess);  // of most it is not
  }

  void move_thresholds(std::size_t at, const Excess& excess) {
    left_.begin(sum_outputs(excess.left));
    if (!Restricted) right_.begin(sum_outputs(excess.right));
    for (int move = 0; move < kMostMoves && above() >= least_ && !settled(); ++move) {
      if (!left_.settled()) left_.move();
      if (!Restricted && !right_.settled()) right_.move();
      if (below() > t_.bar) raise_bar(below(), at);
    }
    tell_thresholds(at, t_.threshold);
    t_.bound[at] = above();
  }

  // Returns what of the terms lies above the thresholds.
  template <class Left>
  Excess put_terms(std::size_t at, Left&& left) {
    Inverse inverse{};
    if (Shared) inverse = {static_cast<float>(t_.inverse_left[at]), static_cast<float>(t_.inverse_right[at])};
    // By themselves: what is stored might be any of the members.
    const Thresholds threshold = threshold_;
    Excess excess{};
    OutputFloats* const left_terms = left_terms_;
    OutputFloats* const right_terms = right_terms_;
    const FloatTerms* const terms = t_.terms;
    const std::size_t n_tiles = t_.n_tiles;
    for (std::size_t i = 0; i < n_tiles; ++i) {
      const Sums sums = left(i);
      for (int v = 0; v < V; ++v) {
        const SideTerms of = side_terms<V, Shared>(terms[i], sums, v, inverse);
        const std::size_t vector = i * V + static_cast<std::size_t>(v);
        const OutputFloats first = Restricted ? of.left + of.right : of.left;
        left_terms[vector] = first;
        excess.left += excess_over(first, threshold.left);
        if (Restricted) continue;
        right_terms[vector] = of.right;
        excess.right += excess_over(of.right, threshold.right);
      }
    }
    return excess;
  }

  float above() const { return Restricted ? left_.above() : left_.above() + right_.above(); }
  float below() const { return Restricted ? left_.below() : left_.below() + right_.below(); }
  bool settled() const { return left_.settled() && (Restricted || right_.settled()); }

  TopBoundTile& t_;
  Sums* const prefix_;  // sums to the left, of each tile of outputs
  Sums* const missing_;
  Sums* const of_step_;             // after each of kStepsTogether, in all tiles
  bool open_[kStepsTogether]{};     // which of them were
  OutputFloats* const left_terms_;  // of both sides together, where restricted
  OutputFloats* const right_terms_;
  Thresholds threshold_{};  // of the candidate at hand
  TopTerms left_, right_;
  float least_ = 0.0f;  // bounds below cannot be the best
};

template <int V, bool Shared>
void settle_of(TopBoundTile& t) {
  t.restricted ? TopSearch<V, Shared, true>(t).settle() : TopSearch<V, Shared, false>(t).settle();
}

void settle(TopBoundTile& t) {
  with_vectors_of(t.terms[0].n_outputs, [&](auto v) {
    t.inverse_left != nullptr ? settle_of<decltype(v)::value, true>(t) : settle_of<decltype(v)::value, false>(t);
  });
}

}  // namespace

extern const TopBoundKernels kTopBoundKernels;
const TopBoundKernels kTopBoundKernels = {excess, settle};

}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
