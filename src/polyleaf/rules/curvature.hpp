// What is summed of a gradient: itself, its square, or the Hessian that belongs to it.
#pragma once

#include "rules/rule.hpp"

namespace polyleaf {

// The last three are of the gradient p - y of a probability, with y 0 or 1.
enum class Term : unsigned char { kItself, kSquare, kPaper, kTwice, kAbsolute };

// As users and losses name them, in that order.
constexpr const char* kTermNames[] = {"itself", "square", "p(1-p)", "2p(1-p)", "abs(p-y)"};

// p(1-p), from the distance |p - y| of a probability to its label 0 or 1. Near 1 a distance in float32 says no more of
// the rest than 2^-25; a Hessian of 0 would end an output's learning.
POLYLEAF_RULE double hessian_of_distance(double distance) {
  constexpr double kLeastRest = 0x1p-25;
  const double rest = 1.0 - distance;
  return distance * (rest < kLeastRest ? kLeastRest : rest);
}

POLYLEAF_RULE double term_of(Term term, double x) {
  if (term == Term::kItself) return x;
  if (term == Term::kSquare) return x * x;
  const double distance = x < 0 ? -x : x;
  if (term == Term::kAbsolute) return distance;
  return (term == Term::kTwice ? 2.0 : 1.0) * hessian_of_distance(distance);
}

// The Hessian by its rule, where the probability itself is at hand.
POLYLEAF_RULE double curvature(Term rule, double p, double y) {
  if (rule == Term::kAbsolute) return p < y ? y - p : p - y;
  return (rule == Term::kTwice ? 2.0 : 1.0) * (p * (1.0 - p));
}

}  // namespace polyleaf
