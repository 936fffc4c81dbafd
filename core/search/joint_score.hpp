// Scores that need all outputs of a candidate at once: sparse leaves (Algorithms 3 and 4 of the paper), the exact
// Hessian (eq. 13 and 14) and monotone constraints (monotone.hpp). Sums are flat over the output tiles, as a node's
// totals are.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "growth/contract.hpp"
#include "growth/value_bounds.hpp"
#include "quantize/payload.hpp"
#include "rules/scoring.hpp"

namespace polyleaf {

struct OutputTerms;

class JointScore {
 public:
  virtual ~JointScore() = default;

  // Work space of one thread.
  struct Scratch {
    std::vector<double> left, right, other;
  };

  // Which candidate of which node.
  struct Place {
    int feature;  // by whose values the children are ordered; -1: by none
    const ValueBounds* bounds;
  };

  // The outputs that leaves are cut down to, where the score is the sum of the largest terms; null: it is not.
  virtual const SparseLeaves* sparse_leaves() const { return nullptr; }

  // Score of both children; anything up to `enough` may be told as any smaller number.
  virtual double children(const std::int32_t* left, const std::int32_t* totals, const Place& place, double enough,
                          Scratch& s) const = 0;
  // Score of a node that holds these outputs (sorted; empty: all).
  virtual double node(const std::int32_t* totals, const std::vector<std::int32_t>& leaf_outputs,
                      const ValueBounds& bounds, Scratch& s) const = 0;
  // The outputs that a root holds, and those that the children of a split hold.
  virtual std::vector<std::int32_t> outputs_of_root(const std::int32_t*, Scratch&) const { return {}; }
  virtual void outputs_of_children(const std::int32_t*, const std::int32_t*, std::vector<std::int32_t>&,
                                   std::vector<std::int32_t>&, Scratch&) const {}
  // The bounds of a root, and those of the children of a split; `feature` as in Place.
  virtual void bound_root(const std::int32_t*, ValueBounds&) const {}
  virtual void bound_children(const std::int32_t*, const std::int32_t*, int, const ValueBounds&, ValueBounds&,
                              ValueBounds&) const {}
};

// Null where scores are sums over outputs, which are taken tile by tile (split_finder.hpp). `monotone`: signs of
// monotone constraints, features x outputs; null: none.
std::unique_ptr<JointScore> make_joint_score(const OutputTerms& terms, const SparseLeaves& sparse,
                                             const std::int8_t* monotone);

}  // namespace polyleaf
