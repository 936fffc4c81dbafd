// Trees for sparse labels (GBDT-sparse): thousands of outputs, a few per row.
#pragma once

#include "growth/contract.hpp"
#include "growth/grow_tree.hpp"
#include "label_sparse/dense_trees.hpp"
#include "label_sparse/labels.hpp"

namespace polyleaf {

// Its gradients are those of the labels at their present scores, to which the trees are not added here.
class LabelSparseGrower : public Grower {
 public:
  // The labels must outlive the grower.
  explicit LabelSparseGrower(const SparseLabels& labels) : labels_(labels) {}

  const SparseLabels& labels() const { return labels_; }
  GrownTree grow(const GrowTask& task, const GrowSettings& settings) override;

 private:
  const SparseLabels& labels_;
  TreeGrowth growth_;
  DenseLabelTrees dense_;
};

}  // namespace polyleaf
