#include "leaves/leaf_values.hpp"

#include <algorithm>
#include <limits>

#include "base/threads.hpp"
#include "gradients/full_hessian.hpp"
#include "kernels/leaf.hpp"
#include "leaves/influence.hpp"
#include "leaves/leaf_sums.hpp"
#include "rules/curvature.hpp"

namespace polyleaf {
namespace {

constexpr double kLargest = std::numeric_limits<float>::max();

int threads_for(const GrowTask& task, int n_threads) {
  const std::size_t cells = task.n_rows() * static_cast<std::size_t>(task.leaf_gradients.n_outputs);
  return cells < kParallelGathers ? 1 : n_threads;
}

// Eq. 13: the Newton step with the full Hessian, of which the lower triangle is given.
std::vector<double> exact_values(std::vector<double> hessian, const double* gradient_sums, int n_outputs,
                                 double reg_lambda) {
  const auto d = static_cast<std::size_t>(n_outputs);
  for (std::size_t j = 0; j < d; ++j) hessian[triangle(j + 1) - 1] += reg_lambda;
  std::vector<double> value(gradient_sums, gradient_sums + d);
  if (!cholesky(hessian.data(), n_outputs)) return std::vector<double>(d, 0.0);
  solve_lower(hessian.data(), n_outputs, value.data());
  solve_upper(hessian.data(), n_outputs, value.data());
  for (double& v : value) v = -v;
  return value;
}

// Of any row, all shards together.
double least_weight(const Gradients& in, const Shard& shard) {
  if (in.weight == nullptr) return 1.0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t row = 0; row < in.n_rows; ++row)
    if (in.weight[row] > 0) least = std::min(least, in.weight[row]);
  return shard.smallest(least);
}

// Scores of a row of a sparse leaf are fetched so many rows ahead, the first of them.
constexpr std::size_t kAhead = 16;
constexpr std::size_t kFetched = 8;

void add_leaf(const GrowTask& task, const GrownTree& tree, std::size_t width, std::size_t leaf, std::size_t row) {
  const double* unit = task.leaf_gradients.unit;
  const float* value = tree.values.data() + leaf * width;
  double* raw = task.destination.raw + row * task.destination.raw_stride;
  if (tree.outputs.empty()) {
    for (std::size_t j = 0; j < width; ++j) raw[j] += unit[j] * static_cast<double>(value[j]);
    return;
  }
  const std::int32_t* output = tree.outputs.data() + leaf * width;
  for (std::size_t i = 0; i < width; ++i) raw[output[i]] += unit[output[i]] * static_cast<double>(value[i]);
}

}  // namespace

bool has_own_hessian(const Gradients& in) {
  if (in.made != nullptr && in.made->has_hessian()) return true;
  return in.hessian != nullptr || in.hessian_rule != Term::kItself;
}

float stored_value(double value) { return static_cast<float>(std::clamp(value, -kLargest, kLargest)); }

std::vector<double> fill_leaves(const GrowTask& task, const GrowSettings& settings, const GradientBounds& bounds,
                                const RowsInLeaves& places, GrownTree& tree) {
  const LeafGradients& in = task.leaf_gradients;
  const std::vector<LeafRows>& leaves = places.leaves;
  const auto d = static_cast<std::size_t>(in.n_outputs);
  const bool bounded = settings.bounded_influence && !has_own_hessian(in);
  const LeafSums sums(in, bounds, task.shard, bounded);
  const std::size_t stride = sums.stride();
  const int n_threads = threads_for(task, settings.n_threads);
  const std::vector<double> total = sums.sum(places, n_threads);

  tree.cover.assign(tree.feature.size(), 0.0);
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) tree.cover[leaves[leaf].node] = total[leaf * stride + 2 * d];
  const std::size_t width = tree.outputs.empty() ? d : tree.outputs.size() / leaves.size();
  tree.values.resize(leaves.size() * width);
  if (settings.exact_leaves()) {
    parallel_for(settings.n_threads, leaves.size(), [&](std::size_t leaf, int) {
      const std::vector<double> value =
          exact_values(sums.full_hessian(places, leaves[leaf]), total.data() + leaf * stride, in.n_outputs,
                       settings.rules.reg_lambda);
      for (std::size_t j = 0; j < d; ++j) tree.values[leaf * d + j] = stored_value(task.learning_rate * value[j]);
    });
    return total;
  }
  const Rules& rules = settings.rules;
  std::vector<double> gradients;  // instead of those in `total`
  if (bounded)
    gradients =
        bounded_sums(sums, total, bounds, least_weight(in, task.shard), in.weight != nullptr, places, n_threads);
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    const double* sum = total.data() + leaf * stride;
    const double* own = gradients.empty() ? sum : gradients.data() + leaf * d;
    for (std::size_t i = 0; i < width; ++i) {
      const std::size_t j = tree.outputs.empty() ? i : static_cast<std::size_t>(tree.outputs[leaf * width + i]);
      const double hessian = has_own_hessian(in) ? sum[d + j] : sum[2 * d];
      const double gradient = soft_threshold(own[j], rules.reg_alpha / in.unit[j]);
      tree.values[leaf * width + i] =
          stored_value(task.learning_rate * leaf_value(gradient, hessian + rules.reg_lambda));
    }
  }
  return total;
}

void add_to_raw(const GrowTask& task, int n_threads, const RowsInLeaves& places, const GrownTree& tree) {
  const std::size_t width = tree.values.size() / places.leaves.size();
  const double* unit = task.leaf_gradients.unit;
  const std::vector<RowChunk> chunks = row_chunks(places.leaves);
  parallel_for(threads_for(task, n_threads), chunks.size(), [&](std::size_t c, int) {
    const RowChunk& chunk = chunks[c];
    if (!tree.outputs.empty()) {
      const std::int32_t* output = tree.outputs.data() + chunk.leaf * width;
      for (std::size_t i = chunk.begin; i < chunk.end; ++i) {
        if (i + kAhead < chunk.end) {
          const double* later = task.destination.raw + places.rows[i + kAhead] * task.destination.raw_stride;
          for (std::size_t j = 0; j < std::min(width, kFetched); ++j) __builtin_prefetch(later + output[j], 1);
        }
        add_leaf(task, tree, width, chunk.leaf, places.rows[i]);
      }
      return;
    }
    std::vector<double> value(width);
    for (std::size_t j = 0; j < width; ++j)
      value[j] = unit[j] * static_cast<double>(tree.values[chunk.leaf * width + j]);
    leaf_kernels().add_to_rows(value.data(), static_cast<int>(width), places.rows + chunk.begin,
                               chunk.end - chunk.begin, task.destination.raw_stride, task.destination.raw);
  });
  each_outside_sample(task, n_threads, tree,
                      [&](std::size_t row, std::size_t leaf) { add_leaf(task, tree, width, leaf, row); });
}

}  // namespace polyleaf
