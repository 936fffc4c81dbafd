#include "kernels/top_bound.hpp"

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

template <int V, bool Shared>
inline SideTerms side_terms(const FloatTerms& t, const OutputSums<V, Shared>& left, int v, const Inverse& inverse) {
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

// No less than the terms after any of the steps (kernels/bin_bounds.hpp says why).
template <int V, bool Shared, bool Restricted>
inline SideTerms largest_terms(const FloatTerms& t, const StepRange<V, Shared>& range, int v, const Inverse& inverse) {
  const OutputFloats factor = load_terms(t.factor + v * kOutputs);
  const OutputIntegers total = load_sums(t.totals + v * kOutputs);
  OutputFloats left, right;  // what squares of gradients are multiplied by
  if (Shared) {
    left = OutputFloats{} + inverse.left;
    right = OutputFloats{} + inverse.right;
  } else {
    const OutputFloats unit = load_terms(t.hessian_unit + v * kOutputs);
    const OutputFloats lambda = load_terms(t.lambda + v * kOutputs);
    const OutputIntegers hessian = load_sums(t.totals + t.hessian_channel + v * kOutputs);
    right = to_floats(range.first.hessian[v]) * unit + lambda;
    left = to_floats(hessian - range.last.hessian[v]) * unit + lambda;
  }
  const OutputFloats scale = Shared ? factor : factor * (1.0f / (left * right));
  const auto lowest = (OutputIntegers)range.lowest[v];
  const auto highest = (OutputIntegers)range.highest[v];
  const OutputFloats low = to_floats(lowest), low_rest = to_floats(total - lowest);
  const OutputFloats high = to_floats(highest), high_rest = to_floats(total - highest);
  if (Restricted)
    return {scale * larger_of(low * low * left + low_rest * low_rest * right,
                              high * high * left + high_rest * high_rest * right),
            OutputFloats{}};
  return {scale * (larger_of(low * low, high * high) * left),
          scale * (larger_of(low_rest * low_rest, high_rest * high_rest) * right)};
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
      add(2 * first, 2 * (end - 1), range);
      if (!with_missing) continue;
      range.add(missing_);
      add(2 * first + 1, 2 * (end - 1) + 1, range);
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

  Inverse inverse(std::size_t left, std::size_t right) const {
    if (!Shared) return {};
    return {static_cast<float>(t_.inverse_left[left]), static_cast<float>(t_.inverse_right[right])};
  }

  void add(std::size_t at, const Sums& left) {
    const Inverse inverses = inverse(at, at);
    OutputFloats excess = {0};
    for (int v = 0; v < V; ++v) {
      const SideTerms of = side_terms<V, Shared>(t_.terms, left, v, inverses);
      excess += excess_over(Restricted ? of.left + of.right : of.left, t_.threshold[0]);
      if (!Restricted) excess += excess_over(of.right, t_.threshold[1]);
    }
    t_.excess[at] += sum_outputs(excess);
  }

  void add(std::size_t at, std::size_t last, const StepRange<V, Shared>& range) {
    const Inverse inverses = inverse(at, last);
    OutputFloats excess = {0};
    for (int v = 0; v < V; ++v) {
      const SideTerms of = largest_terms<V, Shared, Restricted>(t_.terms, range, v, inverses);
      excess += excess_over(of.left, t_.threshold[0]);
      if (!Restricted) excess += excess_over(of.right, t_.threshold[1]);
    }
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

template <int V, bool Shared, bool Restricted>
class TopSearch {
 public:
  using Sums = OutputSums<V, Shared>;

  explicit TopSearch(TopBoundTile& t)
      : t_(t),
        prefix_(reinterpret_cast<Sums*>(t.room)),
        missing_(prefix_ + t.n_tiles),
        left_terms_(reinterpret_cast<OutputFloats*>(missing_ + t.n_tiles)),
        right_terms_(left_terms_ + t.n_tiles * V),
        left_(left_terms_, t.n_tiles * V, t.k, t.threshold[0]),
        right_(right_terms_, t.n_tiles * V, t.k, t.threshold[1]) {
    static_assert(sizeof(Sums) * 2 + sizeof(OutputFloats) * 2 * V <= top_bound_room(1) * sizeof(std::int32_t));
    for (std::size_t i = 0; i < t.n_tiles; ++i) {
      prefix_[i] = missing_[i] = Sums();
      StepReader(t.sums[i]).missing(
          [&](const std::int32_t* channels) { missing_[i].add(channels, t.terms[i].hessian_channel); });
    }
    set_bar(t.bar);
  }

  void settle() {
    for (std::size_t s = 0; s < t_.n_steps; ++s) {
      const Step& step = t_.steps[s];
      for (std::size_t i = 0; i < t_.n_tiles; ++i) add_step(s, i);
      if (step.right_allowed && t_.bound[2 * s] >= least_) look_at(2 * s, [&](std::size_t i) { return prefix_[i]; });
      if (step.left_allowed && t_.bound[2 * s + 1] >= least_)
        look_at(2 * s + 1, [&](std::size_t i) { return prefix_[i] + missing_[i]; });
    }
  }

 private:
  void set_bar(float bar) {
    t_.bar = bar;
    least_ = bar > t_.smallest ? bar * (1.0f - t_.error) : 0.0f;
  }

  void raise_bar(float bar) {
    set_bar(bar);
    t_.best_threshold[0] = left_.threshold();
    t_.best_threshold[1] = right_.threshold();
  }

  void add_step(std::size_t s, std::size_t tile) {
    const StepSums& sums = t_.sums[tile];
    const auto width = static_cast<std::size_t>(sums.width);
    const int hessian_channel = t_.terms[tile].hessian_channel;
    if (sums.histogram != nullptr) return prefix_[tile].add(sums.histogram + t_.steps[s].slot * width, hessian_channel);
    for (std::uint32_t row = s == 0 ? 0 : t_.steps[s - 1].rows_end; row < t_.steps[s].rows_end; ++row)
      prefix_[tile].add(sums.payload + sums.order[row] * width, hessian_channel);
  }

  template <class Left>
  void look_at(std::size_t at, Left&& left) {
    put_terms(at, left);
    for (int move = 0; move < kMostMoves && above() >= least_ && !settled(); ++move) {
      if (!left_.settled()) left_.move();
      if (!Restricted && !right_.settled()) right_.move();
      if (below() > t_.bar) raise_bar(below());
    }
    t_.bound[at] = above();
  }

  template <class Left>
  void put_terms(std::size_t at, Left&& left) {
    Inverse inverse{};
    if (Shared) inverse = {static_cast<float>(t_.inverse_left[at]), static_cast<float>(t_.inverse_right[at])};
    // By themselves: what is stored might be any of the members.
    const float left_threshold = left_.threshold(), right_threshold = right_.threshold();
    OutputFloats left_excess = {0}, right_excess = {0};
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
        left_excess += excess_over(first, left_threshold);
        if (Restricted) continue;
        right_terms[vector] = of.right;
        right_excess += excess_over(of.right, right_threshold);
      }
    }
    left_.begin(sum_outputs(left_excess));
    if (!Restricted) right_.begin(sum_outputs(right_excess));
  }

  float above() const { return Restricted ? left_.above() : left_.above() + right_.above(); }
  float below() const { return Restricted ? left_.below() : left_.below() + right_.below(); }
  bool settled() const { return left_.settled() && (Restricted || right_.settled()); }

  TopBoundTile& t_;
  Sums* const prefix_;  // sums to the left, of each tile of outputs
  Sums* const missing_;
  OutputFloats* const left_terms_;  // of both sides together, where restricted
  OutputFloats* const right_terms_;
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
