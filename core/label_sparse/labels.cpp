#include "label_sparse/labels.hpp"

#include <algorithm>

#include "base/threads.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kBlockRows = 1024;

}  // namespace

float LabelCell::gradient() const {
  return static_cast<float>(labelled ? -std::max(1.0 - score, 0.0) : std::max(score, 0.0));
}

SparseLabels::SparseLabels(std::size_t n_rows, std::size_t n_outputs, const std::int64_t* row_begin,
                           const std::int32_t* label)
    : n_outputs_(n_outputs), cells_(n_rows) {
  for (std::size_t row = 0; row < n_rows; ++row)
    for (std::int64_t e = row_begin[row]; e < row_begin[row + 1]; ++e) cells_[row].push_back({label[e], true, 0.0});
}

void SparseLabels::add(const std::int64_t* value_begin, const float* values, const std::int32_t* outputs,
                       std::size_t width, int n_threads) {
  const auto before = [](const LabelCell& cell, std::int32_t wanted) { return cell.output < wanted; };
  const std::size_t n_blocks = (cells_.size() + kBlockRows - 1) / kBlockRows;
  parallel_for(n_threads, n_blocks, [&](std::size_t block, int) {
    const std::size_t end = std::min(cells_.size(), (block + 1) * kBlockRows);
    for (std::size_t row = block * kBlockRows; row < end; ++row) {
      std::vector<LabelCell>& cells = cells_[row];
      const auto first = static_cast<std::size_t>(value_begin[row]);
      for (std::size_t i = first; i < first + width; ++i) {
        if (values[i] == 0.0f) continue;
        auto at = std::lower_bound(cells.begin(), cells.end(), outputs[i], before);
        if (at == cells.end() || at->output != outputs[i]) at = cells.insert(at, {outputs[i], false, 0.0});
        at->score += static_cast<double>(values[i]);
      }
    }
  });
}

}  // namespace polyleaf
