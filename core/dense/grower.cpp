#include "dense/grower.hpp"

#include <stdexcept>

#include "dense/leaf_filler.hpp"
#include "leaves/leaf_values.hpp"
#include "quantize/bounds.hpp"
#include "search/histogram_search.hpp"
#include "search/shared_search.hpp"

namespace polyleaf {

GrownTree DenseGrower::grow(const GrowTask& task, const GrowSettings& settings) {
  const SplitGradients& gradients = task.split_gradients;
  const LeafGradients& of_leaves = task.leaf_gradients;
  const GradientBounds bounds = bounds_of(of_leaves, task.shard, settings.n_threads);
  const bool same = gradients.gradient == of_leaves.gradient && gradients.hessian == of_leaves.hessian &&
                    gradients.weight == of_leaves.weight;
  quantize(gradients, same ? bounds : bounds_of(gradients, task.shard, settings.n_threads),
           {settings.exact_splits(), settings.packed_sums, settings.n_threads}, task.shard, payload_);
  const std::vector<std::uint32_t>& rows = growth_.take_rows(task);
  if (rows.size() < payload_.n_rows && has_many_feature_cells(*task.matrix, rows.size()))
    payload_.clear_others(rows.data(), rows.size());
  const OutputTerms terms(payload_, settings.rules, gradients.gain_weight, gradients.unit);
  RootMoments moments;
  if (task.matrix->has_categories()) moments = root_moments(gradients, rows, task.shard, settings.n_threads);
  const SearchOptions options{settings.sparse,    task.features, settings.histogram_bytes,
                              settings.n_threads, moments,       task.monotone};
  DenseLeafFiller filler(task, settings, bounds, payload_);
  GrownTree tree;
  if (task.shard.is_alone()) {
    HistogramSearch search(*task.matrix, terms, rows, options, histograms_);
    tree = growth_.run(task, settings, search, filler);
  } else {
    if (bounds.wide)
      throw std::invalid_argument("some weights are more than 2^30 times others: not with rows in several shards");
    SharedSearch search(*task.matrix, terms, rows, options, task.shard, histograms_.kept);
    tree = growth_.run(task, settings, search, filler);
  }
  if (task.destination.raw != nullptr) add_to_raw(task, settings.n_threads, growth_.places(), tree);
  return tree;
}

GrownTree DenseGrower::refill(const GrowTask& task, const GrowSettings& settings, GrownTree tree) {
  if (task.sample.rows != nullptr) throw std::invalid_argument("leaves are filled with all rows, not with a sample");
  const GradientBounds bounds = bounds_of(task.leaf_gradients, task.shard, settings.n_threads);
  const RowsInLeaves& places = growth_.place_all_rows(task, settings.n_threads, tree);
  DenseLeafFiller(task, settings, bounds, payload_).fill_values(places, tree);
  sum_up(tree);
  if (task.destination.leaf_of_row != nullptr) write_leaves(task, settings.n_threads, places, tree);
  if (task.destination.raw != nullptr) add_to_raw(task, settings.n_threads, places, tree);
  return tree;
}

}  // namespace polyleaf
