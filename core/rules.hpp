// The rules of a tree: what a split gains, what a leaf says, which of two candidates wins. Small pure functions, free
// of any container, so that every device compiles the same ones.
#pragma once

#if defined(__CUDACC__)
#define POLYLEAF_RULE static __host__ __device__ inline
#else
#define POLYLEAF_RULE static inline
#endif

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
