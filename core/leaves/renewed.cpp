#include "leaves/renewed.hpp"

#include <algorithm>
#include <cmath>

#include "base/threads.hpp"
#include "leaves/leaf_values.hpp"
#include "rules/exact_sum.hpp"

namespace polyleaf {
namespace {

// Outputs whose residuals are read together: numbers of a row that share a cache line.
constexpr std::size_t kBlockOutputs = 8;
// Residuals that are sorted at once instead of being told apart further.
constexpr std::size_t kFew = 32;

bool lower(const WeightedResidual& a, const WeightedResidual& b) {
  return a.residual != b.residual ? a.residual < b.residual : a.weight < b.weight;
}

// Values of some outputs of one leaf.
class LeafQuantiles {
 public:
  LeafQuantiles(const GrowTask& task, const std::uint32_t* rows, std::size_t n) : task_(task), rows_(rows), n_(n) {}

  void find(const std::size_t* outputs, std::size_t n_outputs, double* values) {
    const Renewal& renewal = task_.renewal;
    const bool weighted = renewal.cell_weight != nullptr || task_.leaf_gradients.weight != nullptr;
    for (std::size_t k = 0; k < n_outputs; ++k) {
      plain_[k].resize(weighted ? 0 : n_);
      weighted_[k].clear();
    }
    for (std::size_t i = 0; i < n_; ++i) {
      const std::size_t row = rows_[i];
      const double* y = renewal.y + row * renewal.y_stride;
      const double* raw = task_.destination.raw + row * task_.destination.raw_stride;
      for (std::size_t k = 0; k < n_outputs; ++k) {
        const double residual = y[renewal.column[outputs[k]]] - raw[outputs[k]];
        if (!weighted) {
          plain_[k][i] = residual;
          continue;
        }
        const double weight = weight_of(row, outputs[k]);
        if (weight > 0) weighted_[k].push_back({residual, weight});
      }
    }
    for (std::size_t k = 0; k < n_outputs; ++k) {
      const double level = renewal.level[outputs[k]];
      values[k] = weighted ? residual_quantile(weighted_[k], level) : residual_quantile(plain_[k], level);
    }
  }

 private:
  double weight_of(std::size_t row, std::size_t output) const {
    const Renewal& renewal = task_.renewal;
    if (renewal.cell_weight != nullptr) return renewal.cell_weight[row * renewal.cell_stride + output];
    return task_.leaf_gradients.weight[row];
  }

  const GrowTask& task_;
  const std::uint32_t* rows_;
  std::size_t n_;
  std::vector<double> plain_[kBlockOutputs];
  std::vector<WeightedResidual> weighted_[kBlockOutputs];
};

}  // namespace

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
    if (below.value() > target + slack || one + 1 == residuals.end()) return one->residual;
    const auto next = one + 1 != end ? one + 1 : std::min_element(end, residuals.end(), lower);
    return 0.5 * (one->residual + next->residual);
  }
  return (end - 1)->residual;  // but for rounding, the last one reached the target
}

void renew_leaves(const GrowTask& task, int n_threads, const RowsInLeaves& places, GrownTree& tree) {
  const std::vector<LeafRows>& leaves = places.leaves;
  const std::size_t width = tree.values.size() / leaves.size();
  const std::size_t n_blocks = (width + kBlockOutputs - 1) / kBlockOutputs;
  const std::size_t n_cells = task.n_rows() * width;
  // Each value depends on its own leaf and output alone: the threads do not matter.
  parallel_for(n_cells < kParallelGathers ? 1 : n_threads, leaves.size() * n_blocks, [&](std::size_t number, int) {
    const std::size_t leaf = number / n_blocks;
    const std::size_t first = leaf * width + number % n_blocks * kBlockOutputs;
    const std::size_t last = std::min(first + kBlockOutputs, (leaf + 1) * width);
    std::size_t at_value[kBlockOutputs], outputs[kBlockOutputs], n = 0;
    for (std::size_t at = first; at < last; ++at) {
      const std::size_t output = tree.outputs.empty() ? at - leaf * width : static_cast<std::size_t>(tree.outputs[at]);
      if (std::isnan(task.renewal.level[output])) continue;
      at_value[n] = at;
      outputs[n++] = output;
    }
    if (n == 0) return;
    double values[kBlockOutputs];
    LeafQuantiles(task, places.rows + leaves[leaf].begin, leaves[leaf].end - leaves[leaf].begin)
        .find(outputs, n, values);
    for (std::size_t k = 0; k < n; ++k) {
      const double value = task.learning_rate * (values[k] / task.leaf_gradients.unit[outputs[k]]);
      tree.values[at_value[k]] = stored_value(value);
    }
  });
}

}  // namespace polyleaf
