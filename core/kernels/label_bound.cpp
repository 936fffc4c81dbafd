#include "kernels/label_bound.hpp"

#include "kernels/output_sums.hpp"
#include "kernels/top_terms.hpp"

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

static_assert(kOutputs <= static_cast<int>(kLabelLane));

constexpr auto kStep = static_cast<std::size_t>(kOutputs);

inline OutputFloats magnitude(const OutputFloats& v) { return v < 0.0f ? -v : v; }

// Squares of a vector's sums, in the metric of the score. What is shrunk is rounded up: a difference of two numbers can
// lose all that they share.
template <bool HasAlpha>
inline OutputFloats squares(const LabelSums& s, const OutputIntegers& sums, std::size_t j) {
  OutputFloats gradient = to_floats(sums);
  if (HasAlpha) {
    gradient = magnitude(gradient) * (1.0f + 1e-6f) - load_terms(s.alpha + j) * (1.0f - 1e-6f);
    gradient = gradient > 0.0f ? gradient : OutputFloats{};
  }
  gradient *= load_terms(s.root + j);
  return gradient * gradient;
}

// Calls visit(j, terms, terms of the rest) for each vector; restricted, the first are those of both.
template <bool Restricted, bool HasAlpha, class Visit>
inline void each_vector(const LabelSums& s, Visit&& visit) {
  for (std::size_t j = 0; j < s.n; j += kStep) {
    const OutputIntegers side = load_sums(s.side + j);
    const OutputFloats of_side = squares<HasAlpha>(s, side, j) * s.inverse_side;
    const OutputFloats of_rest = squares<HasAlpha>(s, load_sums(s.totals + j) - side, j) * s.inverse_rest;
    visit(j, Restricted ? of_side + of_rest : of_side, of_rest);
  }
}

template <bool Restricted, bool HasAlpha>
float excess_of(const LabelSums& s, const float (&threshold)[2]) {
  OutputFloats sum = {0};
  each_vector<Restricted, HasAlpha>(s, [&](std::size_t, const OutputFloats& first, const OutputFloats& second) {
    sum += excess_over(first, threshold[0]);
    if (!Restricted) sum += excess_over(second, threshold[1]);
  });
  return sum_outputs(sum);
}

float excess(const LabelSums& s, const float (&threshold)[2]) {
  if (s.alpha != nullptr)
    return s.restricted ? excess_of<true, true>(s, threshold) : excess_of<false, true>(s, threshold);
  return s.restricted ? excess_of<true, false>(s, threshold) : excess_of<false, false>(s, threshold);
}

template <bool Restricted, bool HasAlpha>
void settle_of(const LabelSums& s, LabelBound& bound) {
  OutputFloats* const first_terms = reinterpret_cast<OutputFloats*>(bound.terms[0]);
  OutputFloats* const second_terms = reinterpret_cast<OutputFloats*>(bound.terms[1]);
  const std::size_t n_vectors = (s.n + kStep - 1) / kStep;
  OutputFloats first_sum = {0}, second_sum = {0};
  each_vector<Restricted, HasAlpha>(s, [&](std::size_t j, const OutputFloats& first, const OutputFloats& second) {
    first_terms[j / kStep] = first;
    first_sum += excess_over(first, bound.threshold[0]);
    if (Restricted) return;
    second_terms[j / kStep] = second;
    second_sum += excess_over(second, bound.threshold[1]);
  });
  TopTerms first(first_terms, n_vectors, bound.k, bound.threshold[0], bound.lowest[0]);
  TopTerms second(second_terms, n_vectors, bound.k, bound.threshold[1], bound.lowest[1]);
  first.begin(sum_outputs(first_sum));
  if (!Restricted) second.begin(sum_outputs(second_sum));
  const auto above = [&] { return Restricted ? first.above() : first.above() + second.above(); };
  const auto settled = [&] { return first.settled() && (Restricted || second.settled()); };
  for (int move = 0; move < kMostMoves && above() >= bound.least && !settled(); ++move) {
    if (!first.settled()) first.move();
    if (!Restricted && !second.settled()) second.move();
  }
  bound.above = above();
  bound.passed[0] = first.passed();
  bound.passed[1] = Restricted ? -1.0f : second.passed();
}

void settle(const LabelSums& s, LabelBound& bound) {
  if (s.alpha != nullptr) return s.restricted ? settle_of<true, true>(s, bound) : settle_of<false, true>(s, bound);
  return s.restricted ? settle_of<true, false>(s, bound) : settle_of<false, false>(s, bound);
}

}  // namespace

extern const LabelBoundKernels kLabelBoundKernels;
const LabelBoundKernels kLabelBoundKernels = {excess, settle};

}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
