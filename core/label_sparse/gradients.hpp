// Gradients of sparse labels, rounded: what splits are found on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "label_sparse/labels.hpp"

namespace polyleaf {

// Integers in compressed rows, and what they mean. The Hessian of a row is its weight.
struct LabelGradients {
  std::vector<std::size_t> row_begin;  // rows + 1
  std::vector<std::int32_t> output;    // ascending within a row
  std::vector<std::int32_t> value;
  std::vector<std::int32_t> weight;  // per row: its Hessian
  bool weighted = false;             // else all weigh 1
  double weight_unit = 1.0;
  std::vector<double> unit;    // per output
  std::vector<double> factor;  // per output: unit^2
  std::vector<double> alpha;   // per output, in units
  bool has_alpha = false;      // some are not 0
};

// Of the labels at their present scores. `weight`: per row; null: 1.
LabelGradients round_gradients(const SparseLabels& labels, const double* weight, double reg_alpha);

}  // namespace polyleaf
