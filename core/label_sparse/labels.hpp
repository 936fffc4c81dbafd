// GBDT-sparse (Si et al. 2017): boosting when labels, scores and gradients are sparse.
//
// The loss is clipped such that a cell without label and score has no gradient: max(1 - f, 0)^2 / 2 where the label is
// set, max(f, 0)^2 / 2 where it is not. Its Hessian counts as 1.
#pragma once

#include <cstdint>
#include <vector>

#include "growth/grower.hpp"
#include "label_sparse/search.hpp"

namespace polyleaf {

class SparseLabels {
 public:
  // Labels in compressed rows; columns ascending within a row.
  SparseLabels(std::size_t n_rows, std::size_t n_outputs, const std::int64_t* row_begin, const std::int32_t* label);

  std::size_t n_rows() const { return cells_.size(); }
  std::size_t n_outputs() const { return n_outputs_; }

  struct Task {
    const BinnedMatrix* matrix = nullptr;
    const double* weight = nullptr;       // null: 1 for every row
    const std::uint32_t* rows = nullptr;  // the sample to grow from, ascending; null: all rows
    std::size_t n_rows = 0;
    FeatureSample features;
  };
  // Grows a tree for the present scores and adds it to them.
  GrownTree grow(const Task& task, const GrowSettings& settings);
  // Adds a tree grown before: the values of row i, and their outputs, are the `width` ones from value_begin[i] on.
  void add(const std::int64_t* value_begin, const float* values, const std::int32_t* outputs, std::size_t width,
           int n_threads);

 private:
  struct Cell {
    std::int32_t output;
    bool labelled;
    double score;
    float gradient() const;
  };

  SparseGradients rounded_gradients(const Task& task, const Rules& rules) const;
  void fill_leaves(const Task& task, const GrowSettings& settings, const std::vector<std::uint32_t>& rows,
                   const std::vector<LeafRows>& leaves, GrownTree& tree) const;
  template <class LeafOfRow>
  void add_leaves(const float* values, const std::int32_t* outputs, std::size_t width, int n_threads,
                  LeafOfRow&& value_begin);
  void add_tree(const Task& task, const GrownTree& tree, int n_threads);

  std::size_t n_outputs_;
  std::vector<std::vector<Cell>> cells_;  // per row, outputs ascending
};

}  // namespace polyleaf
