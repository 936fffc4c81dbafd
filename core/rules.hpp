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

// Eq. 15.
POLYLEAF_RULE double leaf_value(double gradient, double denominator) {
  return denominator > 0 ? -gradient / denominator : 0;
}

// Gain with the factor 1/2. Differences within rounding of 0 are no gain: a node of equal rows is not split.
POLYLEAF_RULE double split_gain(double children_score, double parent_score) {
  const double gain = 0.5 * (children_score - parent_score);
  return gain > 1e-12 * children_score ? gain : 0;
}

struct Candidate {
  double score = -1;  // of both children; below 0: no candidate
  int feature = -1;
  int bin = -1;
  bool missing_left = false;
  bool missing_seen = false;  // the node had missing values of this feature
};

// The larger score; ties go to the lower feature, then bin, then missing values to the right.
POLYLEAF_RULE bool better(const Candidate& a, const Candidate& b) {
  if (a.score != b.score) return a.score > b.score;
  if (a.feature != b.feature) return a.feature < b.feature;
  if (a.bin != b.bin) return a.bin < b.bin;
  return !a.missing_left && b.missing_left;
}

}  // namespace polyleaf
