// Scores that need all outputs of a candidate at once: sparse leaves (Algorithms 3 and 4 of the paper) and the exact
// Hessian (eq. 13 and 14). Sums are flat over the output tiles, as a node's totals are.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "payload.hpp"
#include "rules.hpp"

namespace polyleaf {

struct OutputTerms;

// Which outputs a leaf holds.
struct SparseLeaves {
  int k = 0;  // 0: all
  bool restricted = true;
};

class WholeScore {
 public:
  virtual ~WholeScore() = default;

  // Work space of one thread.
  struct Scratch {
    std::vector<double> left, right, other;
  };

  // Score of both children; anything up to `enough` may be told as any smaller number.
  virtual double children(const std::int32_t* left, const std::int32_t* totals, double enough, Scratch& s) const = 0;
  // Score of a node that holds these outputs (sorted; empty: all).
  virtual double node(const std::int32_t* totals, const std::vector<std::int32_t>& held, Scratch& s) const = 0;
  // The outputs that a root holds, and those that the children of a split hold.
  virtual std::vector<std::int32_t> held_by_root(const std::int32_t*, Scratch&) const { return {}; }
  virtual void held_by_children(const std::int32_t*, const std::int32_t*, std::vector<std::int32_t>&,
                                std::vector<std::int32_t>&, Scratch&) const {}
};

// Score terms of every output in both children (to s.left and s.right); returns their sum. Not of a full Hessian.
double children_terms(const Payload& payload, const Rules& rules, const OutputTerms& terms, const std::int32_t* left,
                      const std::int32_t* totals, WholeScore::Scratch& s);

// Null where scores are sums over outputs, which split.hpp takes tile by tile.
std::unique_ptr<WholeScore> make_whole_score(const Payload& payload, const Rules& rules, const OutputTerms& terms,
                                             const SparseLeaves& sparse);

}  // namespace polyleaf
