#include "predict.hpp"

#include <algorithm>
#include <cmath>

#include "threads.hpp"

namespace polyleaf {
namespace {

constexpr std::int32_t kMissingLeft = std::int32_t{1} << 30;
constexpr std::size_t kBlockRows = 64;
constexpr std::size_t kStepsOfATree = 16;    // about what a row costs in one
constexpr std::size_t kBlockValues = 65536;  // of the table: what a block may hold at most

}  // namespace

Predictor::Predictor(const ForestArrays& in)
    : nodes_(in.n_nodes),
      node_begin_(in.node_begin, in.node_begin + in.n_trees + 1),
      values_(in.values),
      value_output_(in.value_output),
      tree_output_(in.tree_output, in.tree_output + in.n_trees),
      tree_width_(in.tree_width, in.tree_width + in.n_trees) {
  for (std::size_t i = 0; i < in.n_nodes; ++i) {
    PackedNode& node = nodes_[i];
    node.threshold = in.threshold[i];
    if (in.left[i] < 0) {
      node.feature = -1;
      node.left = static_cast<std::int32_t>(leaf_begin_.size());
      leaf_begin_.push_back(in.value_begin[i]);
    } else {
      node.feature = in.feature[i] | (in.missing_left[i] != 0 ? kMissingLeft : 0);
      node.left = in.left[i];
    }
  }
}

// Calls visit(row, count, block, stride) for each block of rows; block holds them as float64, `stride` apart.
template <class Visit>
void Predictor::over_blocks(const MatrixView& x, std::size_t n_trees, int n_threads, Visit&& visit) const {
  const std::size_t m = x.n_columns;
  const std::size_t rows = std::max<std::size_t>(1, std::min(kBlockRows, kBlockValues / std::max<std::size_t>(m, 1)));
  if (x.n_rows * (m + n_trees * kStepsOfATree) < kParallelWork) n_threads = 1;
  std::vector<Buffer<double>> buffers;
  for (int t = 0; t < std::max(1, n_threads); ++t) buffers.emplace_back(rows * m);
  parallel_for(n_threads, (x.n_rows + rows - 1) / rows, [&](std::size_t block, int thread) {
    const std::size_t begin = block * rows;
    const std::size_t count = std::min(rows, x.n_rows - begin);
    double* buffer = buffers[static_cast<std::size_t>(thread)].data();
    for (std::size_t column = 0; column < m; ++column) load_strip(x, begin, count, column, buffer + column, m);
    visit(begin, count, buffer, m);
  });
}

namespace {

template <class PackedNode>
const PackedNode* find_leaf(const PackedNode* tree, const double* row) {
  const PackedNode* node = tree;
  while (node->feature >= 0) {
    const double value = row[node->feature & ~kMissingLeft];
    const bool missing_left = (node->feature & kMissingLeft) != 0;
    const bool left = value <= node->threshold || (missing_left && std::isnan(value));
    node = tree + node->left + (left ? 0 : 1);
  }
  return node;
}

}  // namespace

void Predictor::add(const MatrixView& x, std::size_t begin, std::size_t end, double* raw, std::size_t n_outputs,
                    int n_threads) const {
  over_blocks(x, end - begin, n_threads,
              [&](std::size_t first, std::size_t count, const double* block, std::size_t stride) {
                for (std::size_t t = begin; t < end; ++t) {
                  const PackedNode* tree = nodes_.data() + node_begin_[t];
                  const std::int32_t width = tree_width_[t];
                  double* out = raw + first * n_outputs + tree_output_[t];
                  for (std::size_t i = 0; i < count; ++i, out += n_outputs) {
                    const auto leaf = static_cast<std::size_t>(find_leaf(tree, block + i * stride)->left);
                    const float* value = values_ + leaf_begin_[leaf];
                    if (value_output_ == nullptr) {
                      for (std::int32_t j = 0; j < width; ++j) out[j] += static_cast<double>(value[j]);
                    } else {
                      const std::int32_t* output = value_output_ + leaf_begin_[leaf];
                      for (std::int32_t j = 0; j < width; ++j) out[output[j]] += static_cast<double>(value[j]);
                    }
                  }
                }
              });
}

void Predictor::apply(const MatrixView& x, std::size_t begin, std::size_t end, std::int32_t* leaves,
                      int n_threads) const {
  const std::size_t n_trees = end - begin;
  over_blocks(x, n_trees, n_threads,
              [&](std::size_t first, std::size_t count, const double* block, std::size_t stride) {
                for (std::size_t t = begin; t < end; ++t) {
                  const PackedNode* tree = nodes_.data() + node_begin_[t];
                  for (std::size_t i = 0; i < count; ++i)
                    leaves[(first + i) * n_trees + (t - begin)] =
                        static_cast<std::int32_t>(find_leaf(tree, block + i * stride) - tree);
                }
              });
}

}  // namespace polyleaf
