#include "leaves/shared_renewal.hpp"

#include <cstddef>
#include <utility>
#include <vector>

#include "leaves/renewed.hpp"
#include "leaves/shared_quantiles.hpp"

namespace polyleaf {

void renew_shared_leaves(const GrowTask& task, int n_threads, const RowsInLeaves& places, GrownTree& tree) {
  const bool weighted = weighs_residuals(task);
  std::size_t n_here = 0;
  for (const LeafRows& leaf : places.leaves) n_here += leaf.end - leaf.begin;
  const std::size_t step = columns_at_once(n_here, task.shard);
  const auto n_outputs = static_cast<std::size_t>(task.leaf_gradients.n_outputs);
  for (std::size_t first = 0; first < n_outputs; first += step) {
    std::vector<RenewedValue> values;
    for (const RenewedValue& value : renewed_values(task, places.leaves.size(), tree))
      if (value.output >= first && value.output - first < step) values.push_back(value);
    std::vector<SortedNumbers> here(values.size());
    std::vector<double> levels(values.size());
    each_leaf_of(values, task, places, n_threads, [&](std::size_t v, LeafResiduals& residuals, std::size_t k) {
      here[v] = weighted ? sort_numbers(residuals.weighed[k]) : sort_numbers(residuals.plain[k]);
      levels[v] = task.renewal.level[values[v].output];
    });
    const std::vector<double> quantiles = shared_quantiles(std::move(here), levels, weighted, task.shard, n_threads);
    for (std::size_t v = 0; v < values.size(); ++v) set_renewed(task, values[v], quantiles[v], tree);
  }
}

}  // namespace polyleaf
