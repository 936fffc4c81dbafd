#include "label_sparse/labels.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/threads.hpp"
#include "growth/best_first.hpp"
#include "quantize/fixed_point.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kBlockRows = 1024;

}  // namespace

SparseLabels::SparseLabels(std::size_t n_rows, std::size_t n_outputs, const std::int64_t* row_begin,
                           const std::int32_t* label)
    : n_outputs_(n_outputs), cells_(n_rows) {
  for (std::size_t row = 0; row < n_rows; ++row)
    for (std::int64_t e = row_begin[row]; e < row_begin[row + 1]; ++e) cells_[row].push_back({label[e], true, 0.0});
}

float SparseLabels::Cell::gradient() const {
  return static_cast<float>(labelled ? -std::max(1.0 - score, 0.0) : std::max(score, 0.0));
}

SparseGradients SparseLabels::rounded_gradients(const Task& task, const Rules& rules) const {
  const FixedPoint grid(task.weight, cells_.size());
  const auto weight_of = [&](std::size_t row) { return task.weight != nullptr ? task.weight[row] : 1.0; };
  std::vector<double> total(n_outputs_, 0.0);
  for (std::size_t row = 0; row < cells_.size(); ++row)
    for (const Cell& cell : cells_[row])
      total[static_cast<std::size_t>(cell.output)] += weight_of(row) * std::fabs(static_cast<double>(cell.gradient()));
  SparseGradients out;
  std::vector<double> scale(n_outputs_);
  for (std::size_t j = 0; j < n_outputs_; ++j) {
    const double unit = grid.unit(total[j]);
    scale[j] = grid.weight_unit / unit;
    out.factor.push_back(unit * unit);
    out.alpha.push_back(rules.reg_alpha / unit);
  }
  out.weight_unit = task.weight != nullptr ? grid.unit(grid.total_weight) : 1.0;
  out.row_begin.push_back(0);
  for (std::size_t row = 0; row < cells_.size(); ++row) {
    const double weight = task.weight != nullptr ? task.weight[row] / grid.weight_unit : 1.0;
    for (const Cell& cell : cells_[row]) {
      const auto output = static_cast<std::size_t>(cell.output);
      const double value =
          std::nearbyint(weight * std::nearbyint(static_cast<double>(cell.gradient()) * scale[output]));
      if (value == 0) continue;
      out.output.push_back(cell.output);
      out.value.push_back(static_cast<std::int32_t>(value));
    }
    out.row_begin.push_back(out.output.size());
    out.weight.push_back(
        task.weight != nullptr ? static_cast<std::int32_t>(std::nearbyint(task.weight[row] / out.weight_unit)) : 1);
  }
  return out;
}

// Values of the outputs that the leaves hold, in float64 from the unrounded gradients.
void SparseLabels::fill_leaves(const Task& task, const GrowSettings& settings, const std::vector<std::uint32_t>& rows,
                               const std::vector<LeafRows>& leaves, GrownTree& tree) const {
  const auto width = static_cast<std::size_t>(settings.sparse.k);
  tree.values.assign(leaves.size() * width, 0.0f);
  tree.cover.assign(tree.feature.size(), 0.0);
  parallel_for(settings.n_threads, leaves.size(), [&](std::size_t leaf, int) {
    const std::int32_t* outputs = tree.outputs.data() + leaf * width;
    std::vector<double> gradient(width, 0.0);
    double hessian = 0.0;
    for (std::size_t i = leaves[leaf].begin; i < leaves[leaf].end; ++i) {
      const double weight = task.weight != nullptr ? task.weight[rows[i]] : 1.0;
      hessian += weight;
      for (const Cell& cell : cells_[rows[i]]) {
        const std::int32_t* found = std::lower_bound(outputs, outputs + width, cell.output);
        if (found != outputs + width && *found == cell.output)
          gradient[static_cast<std::size_t>(found - outputs)] += weight * static_cast<double>(cell.gradient());
      }
    }
    tree.cover[leaves[leaf].node] = hessian;
    for (std::size_t i = 0; i < width; ++i) {
      const double shrunk = soft_threshold(gradient[i], settings.rules.reg_alpha);
      tree.values[leaf * width + i] =
          static_cast<float>(settings.learning_rate * leaf_value(shrunk, hessian + settings.rules.reg_lambda));
    }
  });
}

// Adds to each row the `width` values, of these outputs, from value_begin(row) on.
template <class LeafOfRow>
void SparseLabels::add_leaves(const float* values, const std::int32_t* outputs, std::size_t width, int n_threads,
                              LeafOfRow&& value_begin) {
  const auto before = [](const Cell& cell, std::int32_t wanted) { return cell.output < wanted; };
  const std::size_t n_blocks = (cells_.size() + kBlockRows - 1) / kBlockRows;
  parallel_for(n_threads, n_blocks, [&](std::size_t block, int) {
    const std::size_t end = std::min(cells_.size(), (block + 1) * kBlockRows);
    for (std::size_t row = block * kBlockRows; row < end; ++row) {
      std::vector<Cell>& cells = cells_[row];
      const std::size_t first = value_begin(row);
      for (std::size_t i = first; i < first + width; ++i) {
        if (values[i] == 0.0f) continue;
        auto at = std::lower_bound(cells.begin(), cells.end(), outputs[i], before);
        if (at == cells.end() || at->output != outputs[i]) at = cells.insert(at, {outputs[i], false, 0.0});
        at->score += static_cast<double>(values[i]);
      }
    }
  });
}

void SparseLabels::add_tree(const Task& task, const GrownTree& tree, int n_threads) {
  const std::size_t width = tree.values.size() / (tree.feature.size() / 2 + 1);
  add_leaves(tree.values.data(), tree.outputs.data(), width, n_threads,
             [&](std::size_t row) { return find_leaf(*task.matrix, row, tree) * width; });
}

void SparseLabels::add(const std::int64_t* value_begin, const float* values, const std::int32_t* outputs,
                       std::size_t width, int n_threads) {
  add_leaves(values, outputs, width, n_threads,
             [&](std::size_t row) { return static_cast<std::size_t>(value_begin[row]); });
}

GrownTree SparseLabels::grow(const Task& task, const GrowSettings& settings) {
  std::vector<std::uint32_t> rows(task.n_rows);
  std::vector<std::uint32_t> spare(task.n_rows);
  if (task.rows != nullptr)
    std::copy(task.rows, task.rows + task.n_rows, rows.begin());
  else
    std::iota(rows.begin(), rows.end(), 0u);
  const SparseGradients gradients = rounded_gradients(task, settings.rules);
  SparseSearch search(*task.matrix, gradients, settings.rules, settings.sparse, rows, task.features,
                      settings.n_threads);
  BestFirst growth(*task.matrix, settings.rules, search, rows, spare, settings.n_threads);
  const Order order = growth.run();
  GrownTree tree = lay_out_tree(*task.matrix, order);
  fill_leaves(task, settings, rows, leaf_rows(order), tree);
  sum_up(tree);
  place_unseen(*task.matrix, order, tree);
  add_tree(task, tree, settings.n_threads);
  return tree;
}

}  // namespace polyleaf
