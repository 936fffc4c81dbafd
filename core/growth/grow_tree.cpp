#include "growth/grow_tree.hpp"

#include <algorithm>
#include <numeric>

#include "growth/best_first.hpp"
#include "growth/level_growth.hpp"

namespace polyleaf {

const std::vector<std::uint32_t>& TreeGrowth::take_rows(const GrowTask& task) {
  rows_.resize(task.n_rows());
  spare_.resize(task.n_rows());
  if (task.sample.rows != nullptr)
    std::copy(task.sample.rows, task.sample.rows + task.sample.n_rows, rows_.begin());
  else
    std::iota(rows_.begin(), rows_.end(), 0u);
  return rows_;
}

GrownTree TreeGrowth::run(const GrowTask& task, const GrowSettings& settings, SplitSearch& search, LeafFiller& filler) {
  BestFirst growth(*task.matrix, settings.rules, search, rows_, spare_, settings.n_threads);
  return finish(task, settings, growth.run(), filler);
}

GrownTree TreeGrowth::run(const GrowTask& task, const GrowSettings& settings, LevelSearch& search, LeafFiller& filler) {
  LevelGrowth growth(*task.matrix, settings.rules, search, rows_, spare_, settings.n_threads);
  return finish(task, settings, growth.run(), filler);
}

const RowsInLeaves& TreeGrowth::place_all_rows(const GrowTask& task, int n_threads, GrownTree& tree) {
  places_.leaves = gather_all_rows(*task.matrix, n_threads, rows_, tree);
  places_.rows = rows_.data();
  return places_;
}

GrownTree TreeGrowth::finish(const GrowTask& task, const GrowSettings& settings, const Order& order,
                             LeafFiller& filler) {
  const BinnedMatrix& matrix = *task.matrix;
  GrownTree tree = lay_out_tree(matrix, order);
  if (task.gathers_rows()) {
    tree.cover.assign(tree.count.begin(), tree.count.end());  // of the sample: rows outside of it need a way down
    place_unseen(matrix, order, tree);
    place_all_rows(task, settings.n_threads, tree);
  } else {
    places_.leaves = leaf_rows(order);
    places_.rows = rows_.data();
  }
  filler.fill(order, places_, tree);
  sum_up(tree);
  if (!task.gathers_rows()) place_unseen(matrix, order, tree);
  if (task.destination.leaf_of_row != nullptr) write_leaves(task, settings.n_threads, places_, tree);
  return tree;
}

}  // namespace polyleaf
