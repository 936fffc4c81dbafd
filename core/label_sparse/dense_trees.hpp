// Trees for sparse labels whose gradients are not sparse any more: each leaf that a row was in fills some cells of it.
//
// From about one gradient in twenty-four on, sums over all outputs, side by side in vectors, take less time than those
// of single gradients. The grower for dense gradients then grows the tree, which is the same to the last bit.
#pragma once

#include <cstddef>
#include <vector>

#include "base/buffer.hpp"
#include "dense/grower.hpp"
#include "growth/contract.hpp"
#include "label_sparse/labels.hpp"

namespace polyleaf {

class DenseLabelTrees {
 public:
  // Whether they take less time, and little enough memory.
  static bool suit(const SparseLabels& labels, const GrowTask& task, const GrowSettings& settings);

  // The tree of the labels at their present scores.
  GrownTree grow(const SparseLabels& labels, const GrowTask& task, const GrowSettings& settings);

 private:
  Buffer<float> gradients_;  // rows x outputs
  std::vector<double> ones_;
  DenseGrower grower_;
};

}  // namespace polyleaf
