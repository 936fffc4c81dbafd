#include "label_sparse/grower.hpp"

#include "label_sparse/gradients.hpp"
#include "label_sparse/leaf_filler.hpp"
#include "label_sparse/split_search.hpp"

namespace polyleaf {

GrownTree LabelSparseGrower::grow(const GrowTask& task, const GrowSettings& settings) {
  if (DenseLabelTrees::suit(labels_, task, settings)) return dense_.grow(labels_, task, settings);
  const LabelGradients gradients = round_gradients(labels_, task.leaf_gradients.weight, settings.rules.reg_alpha);
  LabelSplitSearch search(task, settings, gradients, growth_.take_rows(task));
  LabelLeafFiller filler(task, settings, labels_);
  return growth_.run(task, settings, search, filler);
}

}  // namespace polyleaf
