#include "label_sparse/dense_trees.hpp"

#include <algorithm>

#include "base/threads.hpp"
#include "quantize/bounds.hpp"

namespace polyleaf {
namespace {

// Where fewer outputs than this have one gradient that is not 0, dense sums take less time (docs/performance.md).
constexpr std::size_t kOutputsPerGradient = 24;
// Cells that may be made dense: 256 MiB of gradients and payload.
constexpr std::size_t kMostCells = std::size_t{1} << 25;
constexpr std::size_t kBlockRows = 1024;

}  // namespace

bool DenseLabelTrees::suit(const SparseLabels& labels, const GrowTask& task, const GrowSettings& settings) {
  const std::size_t n_cells = labels.n_rows() * labels.n_outputs();
  // Not the same bits: leaves of all outputs, the chance that categories are measured by, sums of such weights.
  if (n_cells > kMostCells || static_cast<std::size_t>(settings.sparse.k) >= labels.n_outputs()) return false;
  if (task.matrix->has_categories()) return false;
  if (task.leaf_gradients.weight != nullptr && span_widely(task.leaf_gradients.weight, labels.n_rows())) return false;
  std::size_t n_gradients = 0;
  for (std::size_t row = 0; row < labels.n_rows(); ++row)
    for (const LabelCell& cell : labels.cells(row)) n_gradients += cell.gradient() != 0.0f ? 1 : 0;
  return n_gradients * kOutputsPerGradient >= n_cells;
}

GrownTree DenseLabelTrees::grow(const SparseLabels& labels, const GrowTask& task, const GrowSettings& settings) {
  const std::size_t n_rows = labels.n_rows(), n_outputs = labels.n_outputs();
  if (gradients_.size() != n_rows * n_outputs) gradients_ = Buffer<float>(n_rows * n_outputs);
  ones_.assign(n_outputs, 1.0);
  parallel_for(settings.n_threads, (n_rows + kBlockRows - 1) / kBlockRows, [&](std::size_t block, int) {
    for (std::size_t row = block * kBlockRows; row < std::min(n_rows, (block + 1) * kBlockRows); ++row) {
      float* gradient = gradients_.data() + row * n_outputs;
      std::fill_n(gradient, n_outputs, 0.0f);
      for (const LabelCell& cell : labels.cells(row)) gradient[cell.output] = cell.gradient();
    }
  });
  GrowTask dense = task;
  for (Gradients* gradients :
       {static_cast<Gradients*>(&dense.leaf_gradients), static_cast<Gradients*>(&dense.split_gradients)}) {
    gradients->gradient = gradients_.data();
    gradients->gradient_stride = n_outputs;
    gradients->n_rows = n_rows;
    gradients->n_outputs = static_cast<int>(n_outputs);
  }
  dense.leaf_gradients.unit = dense.split_gradients.unit = dense.split_gradients.gain_weight = ones_.data();
  GrowSettings full = settings;
  full.packed_sums = false;  // the sums of sparse labels have all digits
  return grower_.grow(dense, full);
}

}  // namespace polyleaf
