#include "leaves.hpp"

#include <algorithm>
#include <limits>

#include "kernels.hpp"
#include "partition.hpp"
#include "threads.hpp"

namespace polyleaf {
namespace {

// Sums are taken in chunks of this many rows and added up in their order: the threads do not matter.
constexpr std::size_t kChunkRows = 1024;

constexpr double kLargest = std::numeric_limits<float>::max();

struct Chunk {
  std::size_t leaf;
  std::size_t begin;
  std::size_t end;
};

std::vector<Chunk> chunks_of(const std::vector<LeafRows>& leaves) {
  std::vector<Chunk> chunks;
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf)
    for (std::size_t begin = leaves[leaf].begin; begin < leaves[leaf].end; begin += kChunkRows)
      chunks.push_back({leaf, begin, std::min(leaves[leaf].end, begin + kChunkRows)});
  return chunks;
}

int threads_for(const GrowTask& task, const GrowSettings& settings) {
  const std::size_t cells = task.n_rows * static_cast<std::size_t>(task.gradients.n_outputs);
  return cells < kParallelWork ? 1 : settings.n_threads;
}

void add_leaf(const GrowTask& task, const GrownTree& tree, std::size_t leaf, std::size_t row) {
  const auto d = static_cast<std::size_t>(task.gradients.n_outputs);
  const float* value = tree.values.data() + leaf * d;
  double* raw = task.raw + row * task.raw_stride;
  for (std::size_t j = 0; j < d; ++j) raw[j] += task.unit[j] * static_cast<double>(value[j]);
}

void add_outside_sample(const GrowTask& task, const GrowSettings& settings, const GrownTree& tree) {
  const BinnedMatrix& matrix = *task.matrix;
  std::vector<std::uint8_t> sampled(matrix.n_rows, 0);
  for (std::size_t i = 0; i < task.n_rows; ++i) sampled[task.rows[i]] = 1;
  const std::size_t n_blocks = (matrix.n_rows + kChunkRows - 1) / kChunkRows;
  parallel_for(settings.n_threads, n_blocks, [&](std::size_t block, int) {
    const std::size_t end = std::min(matrix.n_rows, (block + 1) * kChunkRows);
    for (std::size_t row = block * kChunkRows; row < end; ++row) {
      if (sampled[row] != 0) continue;
      std::size_t at = 0;
      while (tree.left[at] >= 0) {
        const bool left = goes_left(matrix, row, tree.feature[at], tree.bin[at], tree.missing_left[at] != 0);
        at = static_cast<std::size_t>(tree.left[at]) + (left ? 0 : 1);
      }
      add_leaf(task, tree, static_cast<std::size_t>(tree.leaf[at]), row);
    }
  });
}

}  // namespace

void fill_leaves(const GrowTask& task, const GrowSettings& settings, const std::uint32_t* rows,
                 const std::vector<LeafRows>& leaves, GrownTree& tree) {
  const Gradients& in = task.gradients;
  const auto d = static_cast<std::size_t>(in.n_outputs);
  const std::vector<Chunk> chunks = chunks_of(leaves);
  const std::size_t stride = 2 * d + 1;  // gradients, Hessians, weight
  std::vector<double> sums(chunks.size() * stride, 0.0);
  parallel_for(threads_for(task, settings), chunks.size(), [&](std::size_t c, int) {
    const std::uint32_t* chunk = rows + chunks[c].begin;
    const std::size_t n = chunks[c].end - chunks[c].begin;
    double* out = sums.data() + c * stride;
    kernels().sum_rows(in.gradient, in.gradient_stride, in.weight, chunk, n, in.n_outputs, out);
    if (in.hessian != nullptr)
      kernels().sum_rows(in.hessian, in.hessian_stride, in.weight, chunk, n, in.n_outputs, out + d);
    double weight = in.weight == nullptr ? static_cast<double>(n) : 0.0;
    if (in.weight != nullptr)
      for (std::size_t i = 0; i < n; ++i) weight += in.weight[chunk[i]];
    out[2 * d] = weight;
  });
  std::vector<double> total(leaves.size() * stride, 0.0);
  for (std::size_t c = 0; c < chunks.size(); ++c)
    for (std::size_t k = 0; k < stride; ++k) total[chunks[c].leaf * stride + k] += sums[c * stride + k];

  const Rules& rules = settings.rules;
  tree.cover.assign(tree.feature.size(), 0.0);
  tree.values.resize(leaves.size() * d);
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    const double* sum = total.data() + leaf * stride;
    tree.cover[leaves[leaf].node] = sum[2 * d];
    for (std::size_t j = 0; j < d; ++j) {
      const double hessian = in.hessian != nullptr ? sum[d + j] : sum[2 * d];
      const double gradient = soft_threshold(sum[j], rules.reg_alpha / task.unit[j]);
      const double value = settings.learning_rate * leaf_value(gradient, hessian + rules.reg_lambda);
      // A vanishing Hessian without regularisation may ask for more than a float can hold.
      tree.values[leaf * d + j] = static_cast<float>(std::clamp(value, -kLargest, kLargest));
    }
  }
}

void add_to_raw(const GrowTask& task, const GrowSettings& settings, const std::uint32_t* rows,
                const std::vector<LeafRows>& leaves, const GrownTree& tree) {
  const std::vector<Chunk> chunks = chunks_of(leaves);
  parallel_for(threads_for(task, settings), chunks.size(), [&](std::size_t c, int) {
    for (std::size_t i = chunks[c].begin; i < chunks[c].end; ++i) add_leaf(task, tree, chunks[c].leaf, rows[i]);
  });
  if (task.rows != nullptr) add_outside_sample(task, settings, tree);
}

}  // namespace polyleaf
