#include "label_sparse/candidate_scores.hpp"

#include <algorithm>
#include <functional>

#include "kernels/score.hpp"
#include "quantize/payload.hpp"
#include "search/top_k.hpp"

namespace polyleaf {
namespace {

// Below, relative to what all gradients of the first output on one side would score, float32 may have lost small terms.
constexpr double kSmallestBound = 1e-25;
// Larger factors of terms may take them out of the range of float32.
constexpr double kLargestInverse = 1e30;
// What lies this share of a threshold below it is looked at when the threshold is moved.
constexpr float kRoomBelow = 0.25f;
// Of a single term, relative to it, with much to spare.
constexpr float kTermError = 1e-5f;

}  // namespace

void LabelTerms::clear() {
  for (std::vector<std::int32_t>* numbers : {&output, &side, &totals}) numbers->clear();
}

void LabelTerms::add(std::int32_t of_output, std::int32_t of_sum, std::int32_t total) {
  output.push_back(of_output);
  side.push_back(of_sum);
  totals.push_back(total);
}

void LabelTerms::compute(const LabelGradients& gradients, double inverse_side, double inverse_rest) {
  const std::size_t padded = size() + PayloadLayout::kLane;
  side.resize(padded, 0);
  totals.resize(padded, 0);
  factor.assign(padded, 0.0);
  alpha.assign(padded, 0.0);
  for (std::size_t i = 0; i < size(); ++i) {
    factor[i] = gradients.factor[static_cast<std::size_t>(output[i])];
    alpha[i] = gradients.alpha[static_cast<std::size_t>(output[i])];
  }
  for (std::vector<double>* terms : {&of_side, &of_rest, &other})
    if (terms->size() < padded) terms->resize(padded);
  TermsTile job{};
  job.left = side.data();
  job.totals = totals.data();
  job.terms.n_outputs = static_cast<int>(size());
  job.terms.factor = factor.data();
  job.terms.alpha = alpha.data();
  job.shared = true;
  job.inverse_left = inverse_side;
  job.inverse_right = inverse_rest;
  job.left_terms = of_side.data();
  job.right_terms = of_rest.data();
  score_kernels().terms(job);
}

double CandidateScores::inverse(std::int64_t weight) const {
  return score_term(1.0, static_cast<double>(weight) * gradients_.weight_unit + rules_.reg_lambda);
}

void CandidateScores::start(const NodeLabels& node) {
  node_ = &node;
  whole_ = inverse(node.weight());
  scale_ = node.fit_float() ? node.scale() * whole_ : 0.0;
  if (!(scale_ > 1e-250 && scale_ < 1e250)) scale_ = 0.0;
  // Terms are not negative, so that their sum is as exact as they are, but for one rounding for each vector of them.
  error_ = kTermError + 1e-7f * static_cast<float>(node.size()) / 8;
  sums_ = {};
  sums_.totals = node.totals();
  sums_.root = node.root();
  sums_.alpha = gradients_.has_alpha ? node.alpha() : nullptr;
  sums_.restricted = sparse_.restricted;
  bound_.k = sparse_.k;
  for (std::size_t which = 0; which < 2; ++which) {
    const std::size_t padded = node.size() + kLabelLane;
    if (room_[which].size() < padded) room_[which].resize(padded);
    bound_.terms[which] = room_[which].data();
  }
  // About that of the node itself.
  const std::size_t at = std::min(static_cast<std::size_t>(sparse_.k), node.size());
  kept_[0] = kept_[1] = at > 0 ? node.potential()[at - 1] : 0.0f;
}

std::size_t CandidateScores::looked_at(const float (&threshold)[2]) const {
  // A term is no more than the potential times the larger factor.
  const float larger = std::max(sums_.inverse_side, sums_.inverse_rest);
  float least = threshold[0] / larger;
  if (!sums_.restricted) least = std::min(threshold[0] / sums_.inverse_side, threshold[1] / sums_.inverse_rest);
  least *= 1.0f - kTermError;
  const float* potential = node_->potential();
  const float* end = std::partition_point(potential, potential + node_->size(), [&](float one) { return one > least; });
  return static_cast<std::size_t>(end - potential);
}

bool CandidateScores::is_less(double enough) {
  const double least = enough / scale_ * (1.0 - error_);
  bound_.least = least > kSmallestBound ? static_cast<float>(std::min(least, 1e38)) : 0.0f;
  sums_.n = looked_at(kept_);
  const float base = static_cast<float>(sparse_.k) * (kept_[0] + (sums_.restricted ? 0.0f : kept_[1]));
  if (base + label_bound_kernels().excess(sums_, kept_) < bound_.least) return true;
  settle(kRoomBelow);
  return bound_.above < bound_.least;
}

// Moves the thresholds, down to this share of what they are.
void CandidateScores::settle(float share_of_threshold) {
  for (std::size_t which = 0; which < 2; ++which) {
    bound_.threshold[which] = kept_[which];
    bound_.lowest[which] = share_of_threshold * kept_[which];
  }
  sums_.n = looked_at(bound_.lowest);
  label_bound_kernels().settle(sums_, bound_);
  kept_[0] = bound_.threshold[0];
  kept_[1] = bound_.threshold[1];
}

double CandidateScores::score(const std::int32_t* side, std::int64_t side_weight, double enough) {
  const double inverse_side = inverse(side_weight), inverse_rest = inverse(node_->weight() - side_weight);
  sums_.side = side;
  sums_.n = node_->size();
  bound_.passed[0] = bound_.passed[1] = -1.0f;
  const double relative[2] = {inverse_side / whole_, inverse_rest / whole_};
  if (scale_ > 0 && relative[0] > 0 && relative[1] > 0 && std::max(relative[0], relative[1]) < kLargestInverse) {
    sums_.inverse_side = static_cast<float>(relative[0]);
    sums_.inverse_rest = static_cast<float>(relative[1]);
    if (is_less(enough)) return -1.0;
    if (bound_.passed[0] < 0 || (!sums_.restricted && bound_.passed[1] < 0)) settle(0.0f);
  }
  return exact(inverse_side, inverse_rest);
}

// What is left out lies below k others.
double CandidateScores::exact(double inverse_side, double inverse_rest) {
  double score = 0.0;
  for (std::size_t which = 0; which < (sums_.restricted ? 1u : 2u); ++which) {
    const float least = gradients_.has_alpha ? -1.0f : bound_.passed[which] * (1.0f - kTermError);
    const std::size_t n = least < 0 ? node_->size() : sums_.n;
    close_.clear();
    for (std::size_t label = 0; label < n; ++label)
      if (least < 0 || bound_.terms[which][label] >= least) close_.push_back(static_cast<std::uint32_t>(label));
    // In the order of the outputs: the same bits whatever else there is.
    std::sort(close_.begin(), close_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return node_->output(a) < node_->output(b); });
    terms_.clear();
    for (const std::uint32_t label : close_) terms_.add(node_->output(label), sums_.side[label], sums_.totals[label]);
    terms_.compute(gradients_, inverse_side, inverse_rest);
    score += top_of(which);
  }
  return score;
}

double CandidateScores::top_of(std::size_t which) {
  if (sums_.restricted)
    for (std::size_t i = 0; i < terms_.size(); ++i) terms_.of_side[i] += terms_.of_rest[i];
  return top_sum(which == 0 ? terms_.of_side : terms_.of_rest, terms_.size(), static_cast<std::size_t>(sparse_.k),
                 terms_.other);
}

}  // namespace polyleaf
