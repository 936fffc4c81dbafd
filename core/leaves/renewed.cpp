#include "leaves/renewed.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/threads.hpp"
#include "leaves/leaf_values.hpp"
#include "rules/exact_sum.hpp"

namespace polyleaf {
namespace {

// Residuals that are sorted at once instead of being told apart further.
constexpr std::size_t kFew = 32;

bool lower(const WeightedResidual& a, const WeightedResidual& b) {
  return a.residual != b.residual ? a.residual < b.residual : a.weight < b.weight;
}

}  // namespace

bool weighs_residuals(const GrowTask& task) {
  return task.renewal.cell_weight != nullptr || task.leaf_gradients.weight != nullptr;
}

void LeafResiduals::take(const GrowTask& task, const std::uint32_t* rows, std::size_t n, const std::size_t* outputs,
                         std::size_t n_outputs) {
  const Renewal& renewal = task.renewal;
  const bool weighted = weighs_residuals(task);
  for (std::size_t k = 0; k < n_outputs; ++k) {
    plain[k].resize(weighted ? 0 : n);
    weighed[k].clear();
  }
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t row = rows[i];
    const double* y = renewal.y + row * renewal.y_stride;
    const double* raw = task.destination.raw + row * task.destination.raw_stride;
    for (std::size_t k = 0; k < n_outputs; ++k) {
      // 0 is added because -0.0 equals 0.0, and which of them comes first would depend on the order of the rows.
      const double residual = y[renewal.column[outputs[k]]] - raw[outputs[k]] + 0.0;
      if (!weighted) {
        plain[k][i] = residual;
        continue;
      }
      const double weight = renewal.cell_weight != nullptr ? renewal.cell_weight[row * renewal.cell_stride + outputs[k]]
                                                           : task.leaf_gradients.weight[row];
      if (weight > 0) weighed[k].push_back({residual, weight});
    }
  }
}

double residual_quantile(std::vector<double>& residuals, double level) {
  if (residuals.empty()) return 0;
  const auto n = static_cast<double>(residuals.size());
  const double target = level * n;
  // Of n equal weights, the cumulative weight of the one in place i (from 0) is i + 1.
  auto place = static_cast<std::size_t>(std::max(0.0, std::ceil(target - kRounding * n) - 1));
  place = std::min(place, residuals.size() - 1);
  const auto at = residuals.begin() + static_cast<std::ptrdiff_t>(place);
  std::nth_element(residuals.begin(), at, residuals.end());
  const bool flat = static_cast<double>(place + 1) <= target + kRounding * n && place + 1 < residuals.size();
  return flat ? 0.5 * (*at + *std::min_element(at + 1, residuals.end())) : *at;
}

double residual_quantile(std::vector<WeightedResidual>& residuals, double level) {
  if (residuals.empty()) return 0;
  double largest = 0;
  for (const WeightedResidual& one : residuals) largest = std::max(largest, one.weight);
  const SumGrid grid = sum_grid(largest, static_cast<double>(residuals.size()));
  const auto sum_of = [&](auto from, auto to) {
    ExactSum sum;
    for (; from != to; ++from) sum.add(from->weight, grid);
    return sum;
  };
  const double total = sum_of(residuals.begin(), residuals.end()).value();
  const double target = level * total;
  const double slack = kRounding * total;
  // The wanted residual is in [begin, end); all before are lower, all behind are not, and `below` weigh the former.
  auto begin = residuals.begin();
  auto end = residuals.end();
  ExactSum below;
  while (end - begin > static_cast<std::ptrdiff_t>(kFew)) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, lower);
    ExactSum half = sum_of(begin, middle);
    half.add(below);
    if (half.value() >= target - slack) {
      end = middle;
    } else {
      below = half;
      begin = middle;
    }
  }
  std::sort(begin, end, lower);
  for (auto one = begin; one != end; ++one) {
    below.add(one->weight, grid);
    if (below.value() < target - slack && one + 1 != residuals.end()) continue;
    const double found = one->residual;
    double next = std::numeric_limits<double>::infinity();
    ExactSum through;  // with all that are equal
    for (const WeightedResidual& other : residuals) {
      if (other.residual <= found)
        through.add(other.weight, grid);
      else
        next = std::min(next, other.residual);
    }
    return through.value() > target + slack || std::isinf(next) ? found : 0.5 * (found + next);
  }
  return (end - 1)->residual;  // but for rounding, the last one reached the target
}

std::vector<RenewedValue> renewed_values(const GrowTask& task, std::size_t n_leaves, const GrownTree& tree) {
  const std::size_t width = tree.values.size() / n_leaves;
  std::vector<RenewedValue> values;
  for (std::size_t at = 0; at < tree.values.size(); ++at) {
    const std::size_t output = tree.outputs.empty() ? at % width : static_cast<std::size_t>(tree.outputs[at]);
    if (!std::isnan(task.renewal.level[output])) values.push_back({at / width, output, at});
  }
  return values;
}

void set_renewed(const GrowTask& task, const RenewedValue& place, double quantile, GrownTree& tree) {
  tree.values[place.at] = stored_value(task.learning_rate * (quantile / task.leaf_gradients.unit[place.output]));
}

void each_leaf_of(const std::vector<RenewedValue>& values, const GrowTask& task, const RowsInLeaves& places,
                  int n_threads, const std::function<void(std::size_t, LeafResiduals&, std::size_t)>& visit) {
  // Values of a leaf are taken together, as many as share a cache line of its rows.
  std::vector<std::size_t> block_begin;
  for (std::size_t v = 0; v < values.size(); ++v)
    if (v == 0 || values[v].leaf != values[v - 1].leaf || v - block_begin.back() == LeafResiduals::kMost)
      block_begin.push_back(v);
  const std::size_t n_blocks = block_begin.size();
  block_begin.push_back(values.size());
  const std::size_t n_cells = task.n_rows() * (values.size() / std::max<std::size_t>(1, places.leaves.size()));
  parallel_for(n_cells < kParallelGathers ? 1 : n_threads, n_blocks, [&](std::size_t block, int) {
    const std::size_t first = block_begin[block], n = block_begin[block + 1] - first;
    std::size_t outputs[LeafResiduals::kMost];
    for (std::size_t k = 0; k < n; ++k) outputs[k] = values[first + k].output;
    const LeafRows& leaf = places.leaves[values[first].leaf];
    LeafResiduals residuals;
    residuals.take(task, places.rows + leaf.begin, leaf.end - leaf.begin, outputs, n);
    for (std::size_t k = 0; k < n; ++k) visit(first + k, residuals, k);
  });
}

void renew_leaves(const GrowTask& task, int n_threads, const RowsInLeaves& places, GrownTree& tree) {
  const std::vector<RenewedValue> values = renewed_values(task, places.leaves.size(), tree);
  const bool weighted = weighs_residuals(task);
  // Each value depends on its own leaf and output alone: the threads do not matter.
  each_leaf_of(values, task, places, n_threads, [&](std::size_t v, LeafResiduals& residuals, std::size_t k) {
    const double level = task.renewal.level[values[v].output];
    const double quantile =
        weighted ? residual_quantile(residuals.weighed[k], level) : residual_quantile(residuals.plain[k], level);
    set_renewed(task, values[v], quantile, tree);
  });
}

}  // namespace polyleaf
