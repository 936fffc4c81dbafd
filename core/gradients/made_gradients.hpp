// Gradients that are not stored: made from the scores, some rows at a time, whenever they are asked for.
//
// The sweep of the score pass makes them once, for their sketch and their magnitudes; the sums over the leaves make
// them once more. Both times the formula gets the same scores: the tree in between is added to them later.
#pragma once

#include <cstddef>
#include <vector>

#include "gradients/formula.hpp"

namespace polyleaf {

class MadeGradients {
 public:
  // The scores and the weights of cells are rows x outputs, and stay where they are. Without weights (null) they are 1.
  // `own_hessian`: whether the Hessians of the formula are wanted. Weights are Hessians where it has none.
  MadeGradients(const Formula& formula, const double* scores, const float* cell_weight, bool own_hessian)
      : formula_(formula), scores_(scores), cell_weight_(cell_weight), formula_hessian_(own_hessian) {}

  std::size_t n_rows() const { return formula_.n_rows(); }
  int n_outputs() const { return formula_.n_outputs(); }
  const double* scores() const { return scores_; }
  // Whether there are Hessians to be made.
  bool has_hessian() const { return formula_hessian_ || cell_weight_ != nullptr; }

  // Gradients of rows [begin, end), and Hessians where there are any, weighted by cells.
  void make(std::size_t begin, std::size_t end, float* gradient, float* hessian) const;

  // The largest weighted magnitudes of each output, as the last sweep has seen them; empty: it was not asked for them.
  std::vector<double> largest_gradient, largest_hessian;

 private:
  const Formula& formula_;
  const double* scores_;
  const float* cell_weight_;
  bool formula_hessian_;
};

}  // namespace polyleaf
