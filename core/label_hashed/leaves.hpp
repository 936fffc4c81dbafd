// Leaves that hold the labels with the most to gain, once the splits of a tree stand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "label_sparse/labels.hpp"

namespace polyleaf {

// The rows that leaf values come from.
struct LeafMembers {
  std::size_t n_rows = 0;
  const std::uint32_t* rows = nullptr;         // null: 0, 1, ...
  const std::uint32_t* leaf_of_row = nullptr;  // of all rows of the labels
  const double* weight = nullptr;              // of all rows of the labels; null: 1
  std::size_t n_leaves = 0;
};

struct LabelLeafRule {
  std::size_t most;  // labels of a leaf
  double reg_lambda;
  double reg_alpha;
  double learning_rate;
};

// Leaf after leaf, `width` values side by side, each with its label: ascending in a leaf. A leaf with less to say has
// values of 0 for some others.
struct LabelLeaves {
  std::size_t width = 0;
  std::vector<float> values;
  std::vector<std::int32_t> labels;
};

// Of the labels with a gradient in a leaf, those with the largest sums of it are kept; of equal ones the first. Values
// in float64 from the gradients themselves (eq. 15), by sums that no order of the rows changes.
LabelLeaves fill_label_leaves(const SparseLabels& labels, const LeafMembers& members, const LabelLeafRule& rule,
                              int n_threads);

}  // namespace polyleaf
