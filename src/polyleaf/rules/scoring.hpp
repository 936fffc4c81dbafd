// The rules of a tree: what a split gains, what a leaf says, which of two candidates wins.
#pragma once

#include "rules/rule.hpp"

namespace polyleaf {

struct Rules {
  int max_depth;  // a node at this depth is a leaf
  int max_leaves;
  int min_samples_leaf;
  double min_split_gain;
  double min_child_weight;
  double reg_lambda;
  double reg_alpha;
};

// Sums over outputs depend on the order of the outputs in their last bits: scores that differ by less than this
// share of them are equal.
constexpr double kRounding = 1e-12;

// L1 regularisation shrinks the gradient sum towards 0.
POLYLEAF_RULE double soft_threshold(double gradient, double alpha) {
  const double magnitude = (gradient < 0 ? -gradient : gradient) - alpha;
  const double shrunk = magnitude > 0 ? magnitude : 0;
  return gradient < 0 ? -shrunk : shrunk;
}

// One output's term of eq. 16, without the factor -1/2. `denominator` is H + lambda; where it is 0 the leaf says 0.
POLYLEAF_RULE double score_term(double gradient, double denominator) {
  const double safe = denominator > 0 ? denominator : 1;
  const double term = gradient * gradient / safe;
  return denominator > 0 ? term : 0;
}

// The same of both children with one division instead of two, and no questions asked: for positive denominators whose
// product is within range.
POLYLEAF_RULE double score_terms(double left, double left_denominator, double right, double right_denominator) {
  return (left * left * right_denominator + right * right * left_denominator) / (left_denominator * right_denominator);
}

// Eq. 15.
POLYLEAF_RULE double leaf_value(double gradient, double denominator) {
  return denominator > 0 ? -gradient / denominator : 0;
}

// Gain with the factor 1/2. Differences within rounding of 0 are no gain: a node of equal rows is not split.
POLYLEAF_RULE double split_gain(double children_score, double parent_score) {
  const double gain = 0.5 * (children_score - parent_score);
  return gain > kRounding * children_score ? gain : 0;
}

// A value within bounds.
POLYLEAF_RULE double bounded(double value, double low, double high) {
  return value < low ? low : value > high ? high : value;
}

// One output's term of the score of a leaf that says `value`, be it eq. 15's or not: -2 times its objective. Where
// nothing holds the output down (H + lambda = 0), it has no say.
POLYLEAF_RULE double value_term(double gradient, double denominator, double alpha, double value) {
  const double magnitude = value < 0 ? -value : value;
  return denominator > 0 ? -2 * gradient * value - denominator * value * value - 2 * alpha * magnitude : 0;
}

// The sum of the magnitudes that make up the term.
POLYLEAF_RULE double value_magnitude(double gradient, double denominator, double alpha, double value) {
  const double magnitude = value < 0 ? -value : value;
  const double slope = (gradient < 0 ? -gradient : gradient) + alpha;
  return denominator > 0 ? 2 * slope * magnitude + denominator * value * value : 0;
}

struct SiblingValues {
  double left;
  double right;
};

// The best values of two sibling leaves within the bounds, of which the right one's may not lie below the left one's
// (sign 1) or above it (sign -1). Where their own values would, both say the best common one, the pooled value.
POLYLEAF_RULE SiblingValues sibling_values(double left, double left_denominator, double right, double right_denominator,
                                           double alpha, int sign, double low, double high) {
  SiblingValues value = {leaf_value(soft_threshold(left, alpha), left_denominator),
                         leaf_value(soft_threshold(right, alpha), right_denominator)};
  if (sign * value.left > sign * value.right) {
    const double pooled = leaf_value(soft_threshold(left + right, 2 * alpha), left_denominator + right_denominator);
    // It lies between the two, but for rounding and where one of them has no curvature.
    value.left = value.right =
        sign > 0 ? bounded(pooled, value.right, value.left) : bounded(pooled, value.left, value.right);
  }
  return {bounded(value.left, low, high), bounded(value.right, low, high)};
}

struct Candidate {
  double score = -1;  // of both children; below 0: no candidate
  int feature = -1;
  int bin = -1;
  bool missing_left = false;
  bool missing_seen = false;  // the node had missing values of this feature
};

POLYLEAF_RULE bool reaches(double score, double highest) { return score >= highest * (1 - kRounding); }

// The largest score; ties go to the lower feature, then bin, then missing values to the right.
struct BestCandidate {
  Candidate chosen;
  double highest = -1;

  void offer(const Candidate& candidate) { merge({candidate, candidate.score}); }
  void merge(const BestCandidate& other) {
    if (other.chosen.feature < 0) return;
    const bool keeps = chosen.feature >= 0 && reaches(chosen.score, other.highest);
    const bool takes = chosen.feature < 0 || reaches(other.chosen.score, highest);
    if (takes && (!keeps || precedes(other.chosen, chosen))) chosen = other.chosen;
    if (other.highest > highest) highest = other.highest;
  }

 private:
  static bool precedes(const Candidate& a, const Candidate& b) {
    if (a.feature != b.feature) return a.feature < b.feature;
    if (a.bin != b.bin) return a.bin < b.bin;
    return !a.missing_left && b.missing_left;
  }
};

}  // namespace polyleaf
