// GBDT-sparse (Si et al. 2017): boosting when labels, scores and gradients are sparse.
//
// The loss is clipped such that a cell without label and score has no gradient: max(1 - f, 0)^2 / 2 where the label is
// set, max(f, 0)^2 / 2 where it is not. Its Hessian counts as 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace polyleaf {

// A cell that has a label or a score.
struct LabelCell {
  std::int32_t output;
  bool labelled;
  double score;
  float gradient() const;
};

// The labels of all rows, and their scores.
class SparseLabels {
 public:
  // Labels in compressed rows; columns ascending within a row.
  SparseLabels(std::size_t n_rows, std::size_t n_outputs, const std::int64_t* row_begin, const std::int32_t* label);

  std::size_t n_rows() const { return cells_.size(); }
  std::size_t n_outputs() const { return n_outputs_; }
  // Of one row, outputs ascending.
  const std::vector<LabelCell>& cells(std::size_t row) const { return cells_[row]; }

  // Adds a tree: the values of row i, and their outputs, are the `width` ones from value_begin[i] on.
  void add(const std::int64_t* value_begin, const float* values, const std::int32_t* outputs, std::size_t width,
           int n_threads);

 private:
  std::size_t n_outputs_;
  std::vector<std::vector<LabelCell>> cells_;
};

}  // namespace polyleaf
