#include "kernels/score.hpp"

#include "base/lanes.hpp"
#include "base/row_vector.hpp"
#include "kernels/step_reader.hpp"
#include "rules/scoring.hpp"

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

constexpr int kMaxWidth = 32;

// The totals of a node as float64, padded to whole lanes.
struct Totals {
  double gradient[kMaxWidth + kLane];
  double hessian[kMaxWidth + kLane];
};

template <bool HasAlpha, bool Moderate>
void add_diagonal(const TileTerms& t, const Totals& total, const std::int32_t* left, double* score,
                  double* left_weight) {
  double lane[kLane] = {0};
  double weight[kLane] = {0};
  for (int j = 0; j < t.n_outputs; j += kLane) {
    for (int l = 0; l < kLane; ++l) {
      double gl = left[j + l];
      double gr = total.gradient[j + l] - gl;
      const double hl = left[t.hessian_channel + j + l];
      const double hr = total.hessian[j + l] - hl;
      if (HasAlpha) {
        gl = soft_threshold(gl, t.alpha[j + l]);
        gr = soft_threshold(gr, t.alpha[j + l]);
      }
      const double dl = hl * t.hessian_unit[j + l] + t.lambda[j + l];
      const double dr = hr * t.hessian_unit[j + l] + t.lambda[j + l];
      lane[l] += t.factor[j + l] * (Moderate ? score_terms(gl, dl, gr, dr) : score_term(gl, dl) + score_term(gr, dr));
      weight[l] += hl * t.hessian_unit[j + l];
    }
  }
  *score += sum_lanes(lane);
  if (left_weight != nullptr) *left_weight += sum_lanes(weight);
}

// `inverse`: 1 / (H + lambda) of the left and of the right side.
template <bool HasAlpha>
void add_shared(const TileTerms& t, const Totals& total, const std::int32_t* left, const double (&inverse)[2],
                double* score) {
  double lane_left[kLane] = {0};
  double lane_right[kLane] = {0};
  for (int j = 0; j < t.n_outputs; j += kLane) {
    for (int l = 0; l < kLane; ++l) {
      double gl = left[j + l];
      double gr = total.gradient[j + l] - gl;
      if (HasAlpha) {
        gl = soft_threshold(gl, t.alpha[j + l]);
        gr = soft_threshold(gr, t.alpha[j + l]);
      }
      lane_left[l] += t.factor[j + l] * (gl * gl);
      lane_right[l] += t.factor[j + l] * (gr * gr);
    }
  }
  *score += sum_lanes(lane_left) * inverse[0] + sum_lanes(lane_right) * inverse[1];
}

template <bool HasAlpha, bool Moderate>
void scan_candidates(const ScanTile& t) {
  // Reads of whole lanes may run past the channels that count; the padding of `factor` and `lambda` makes them 0.
  alignas(64) std::int32_t prefix[kMaxWidth + 2 * kLane] = {0};
  alignas(64) std::int32_t with_missing[kMaxWidth + 2 * kLane] = {0};
  Totals total;
  for (int j = 0; j < kMaxWidth + kLane; ++j) {
    total.gradient[j] = j < t.terms.n_outputs ? t.totals[j] : 0;
    total.hessian[j] = j < t.terms.n_outputs && t.inverse_left == nullptr ? t.totals[t.terms.hessian_channel + j] : 0;
  }
  alignas(64) std::int32_t missing_room[kMaxWidth] = {0};
  StepReader reader(t.sums);
  const std::int32_t* missing = reader.missing_sums(missing_room);
  for (std::size_t s = 0; s < t.n_steps; ++s) {
    reader.add_next(t.steps[s], prefix);
    for (int direction = 0; direction < 2; ++direction) {
      if (!(direction == 0 ? t.steps[s].right_allowed : t.steps[s].left_allowed)) continue;
      const std::int32_t* left = prefix;
      if (direction == 1) {
        for (int c = 0; c < t.sums.width; ++c) with_missing[c] = prefix[c] + missing[c];
        left = with_missing;
      }
      const std::size_t at = 2 * s + static_cast<std::size_t>(direction);
      if (t.inverse_left != nullptr)
        add_shared<HasAlpha>(t.terms, total, left, {t.inverse_left[at], t.inverse_right[at]}, t.score + at);
      else
        add_diagonal<HasAlpha, Moderate>(t.terms, total, left, t.score + at,
                                         t.left_weight != nullptr ? t.left_weight + at : nullptr);
    }
  }
}

void scan(const ScanTile& t) {
  if (t.has_alpha)
    t.moderate ? scan_candidates<true, true>(t) : scan_candidates<true, false>(t);
  else
    t.moderate ? scan_candidates<false, true>(t) : scan_candidates<false, false>(t);
}

template <bool Shared>
double terms_of(const TermsTile& t) {
  const std::int32_t* left = t.left;
  const std::int32_t* totals = t.totals;
  double lane[kLane] = {0};
  for (int j = 0; j < t.terms.n_outputs; j += kLane) {
    const double* factor = t.terms.factor + j;
    const double* alpha = t.terms.alpha + j;
    // Reads past the outputs meet a factor of 0 and a lambda of 1.
    double sl[kLane], sr[kLane];
    for (int l = 0; l < kLane; ++l) {
      const double gl = soft_threshold(left[j + l], alpha[l]);
      const double gr = soft_threshold(static_cast<double>(totals[j + l]) - left[j + l], alpha[l]);
      if (Shared) {
        sl[l] = gl * gl * t.inverse_left;
        sr[l] = gr * gr * t.inverse_right;
      } else {
        const double hl = left[t.terms.hessian_channel + j + l];
        const double hr = static_cast<double>(totals[t.terms.hessian_channel + j + l]) - hl;
        sl[l] = score_term(gl, hl * t.terms.hessian_unit[j + l] + t.terms.lambda[j + l]);
        sr[l] = score_term(gr, hr * t.terms.hessian_unit[j + l] + t.terms.lambda[j + l]);
      }
    }
    double* left_terms = t.left_terms + j;
    double* right_terms = t.right_terms + j;
    double weight[kLane];
    for (int l = 0; l < kLane; ++l) weight[l] = factor[l];
    for (int l = 0; l < kLane; ++l) left_terms[l] = weight[l] * sl[l];
    for (int l = 0; l < kLane; ++l) right_terms[l] = weight[l] * sr[l];
    for (int l = 0; l < kLane; ++l) lane[l] += weight[l] * (sl[l] + sr[l]);
  }
  return sum_lanes(lane);
}

double terms(const TermsTile& t) { return t.shared ? terms_of<true>(t) : terms_of<false>(t); }

}  // namespace

extern const ScoreKernels kScoreKernels;
const ScoreKernels kScoreKernels = {scan, terms};

}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
