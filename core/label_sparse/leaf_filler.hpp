// Leaves that hold some outputs each, from the gradients of sparse labels.
#pragma once

#include "growth/contract.hpp"
#include "growth/leaf_filler.hpp"
#include "label_sparse/labels.hpp"

namespace polyleaf {

class LabelLeafFiller : public LeafFiller {
 public:
  LabelLeafFiller(const GrowTask& task, const GrowSettings& settings, const SparseLabels& labels)
      : task_(task), settings_(settings), labels_(labels) {}

  // Values in float64 from the unrounded gradients.
  void fill(const Order& order, const RowsInLeaves& places, GrownTree& tree) override;

 private:
  const GrowTask& task_;
  const GrowSettings& settings_;
  const SparseLabels& labels_;
};

}  // namespace polyleaf
