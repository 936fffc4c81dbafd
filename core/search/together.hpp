// Bounds of several steps in a row (kernels/top_bound.hpp): what they are made of, and when they are worth their while.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/top_bound.hpp"
#include "search/candidates.hpp"

namespace polyleaf {

// A feature's candidates, whose terms of one tile of outputs are to be added to `excess`, 2 numbers per step of the
// feature tile. How they are added up is left open.
inline ExcessTile excess_of(const Candidates& candidates, std::size_t position, const FloatTerms& terms,
                            const StepSums& sums, float* excess) {
  const std::size_t first = candidates.begin(position);
  ExcessTile job{};
  job.sums = sums;
  job.steps = &candidates.step(first);
  job.n_steps = candidates.end(position) - first;
  job.terms = terms;
  job.inverse_left = candidates.inverse_left(first);
  job.inverse_right = candidates.inverse_right(first);
  job.excess = excess + 2 * first;
  return job;
}

// Whether bounds of several steps are worth their while. After a tile of features in which they passed over less than
// half of the steps, the next ones do without: one tile, then two, and so on up to kMostAlone.
class Together {
 public:
  bool worthwhile() const { return alone_ == 0; }
  void did_without() { --alone_; }
  // `n_left` of the steps were not passed over.
  void took(std::size_t n_left, std::size_t n_steps) {
    if (2 * n_left > n_steps)
      alone_ = n_alone_ = std::min(2 * n_alone_, kMostAlone);
    else
      n_alone_ = 1;
  }

 private:
  static constexpr int kMostAlone = 256;

  int alone_ = 0, n_alone_ = 1;  // tiles without: still, and after the next disappointment
};

}  // namespace polyleaf
