#include "growth/grower.hpp"

#include <algorithm>
#include <numeric>

#include "growth/best_first.hpp"
#include "leaves/leaf_values.hpp"
#include "leaves/output_gain.hpp"
#include "leaves/renewed.hpp"
#include "search/histogram_search.hpp"
#include "search/monotone.hpp"

namespace polyleaf {

GrownTree TreeGrower::grow(const GrowTask& task, const GrowSettings& settings) {
  quantize(task.structure, settings.exact == ExactHessian::kEverywhere, settings.n_threads, payload_);
  rows_.resize(task.n_rows);
  spare_.resize(task.n_rows);
  if (task.rows != nullptr)
    std::copy(task.rows, task.rows + task.n_rows, rows_.begin());
  else
    std::iota(rows_.begin(), rows_.end(), 0u);

  const BinnedMatrix& matrix = *task.matrix;
  const OutputTerms terms(payload_, settings.rules, task.gain_weight, task.structure_unit);
  RootMoments moments;
  if (matrix.has_categories()) moments = root_moments(task.structure, rows_, settings.n_threads);
  HistogramSearch search(
      matrix, payload_, settings.rules, terms, rows_,
      {settings.sparse, task.features, settings.histogram_bytes, settings.n_threads, moments, task.monotone},
      histograms_);
  BestFirst growth(matrix, settings.rules, search, rows_, spare_, settings.n_threads);
  const Order order = growth.run();
  std::vector<LeafRows> leaves = leaf_rows(order);
  GrownTree tree = lay_out_tree(matrix, order);
  const bool gather = task.all_rows_in_leaves && task.rows != nullptr;
  if (gather) {
    tree.cover.assign(tree.count.begin(), tree.count.end());  // of the sample: rows outside of it need a way down
    place_unseen(matrix, order, tree);
    leaves = gather_all_rows(matrix, settings.n_threads, rows_, tree);
  }
  const std::vector<double> leaf_sums = fill_leaves(task, settings, rows_.data(), leaves, tree);
  if (task.renewal.level != nullptr) renew_leaves(task, settings, rows_.data(), leaves, tree);
  if (task.monotone != nullptr) clip_leaves(order, payload_, settings.learning_rate, tree);
  if (settings.output_gains) {
    const Rules& rules = settings.rules;
    share_gains({task.gradients.n_outputs, task.unit, has_own_hessian(task.gradients), rules.reg_lambda,
                 rules.reg_alpha, payload_.gradient_unit.data()},
                order, leaf_sums.data(), tree);
  }
  sum_up(tree);
  if (!gather) place_unseen(matrix, order, tree);
  if (task.leaf_of_row != nullptr) write_leaves(task, settings, rows_.data(), leaves, tree);
  if (task.raw != nullptr) add_to_raw(task, settings, rows_.data(), leaves, tree);
  return tree;
}

}  // namespace polyleaf
