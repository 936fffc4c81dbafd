#include "label_hashed/mixtures.hpp"

#include <algorithm>
#include <vector>

#include "base/threads.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kBlockRows = 1024;

}  // namespace

void mix_gradients(const SparseLabels& labels, const LabelHash& hash, float* mixtures, int n_threads) {
  const std::size_t n_rows = labels.n_rows();
  parallel_for(n_threads, (n_rows + kBlockRows - 1) / kBlockRows, [&](std::size_t block, int) {
    std::vector<double> sums(hash.n_groups);  // in the order of the labels: the same whatever rows are beside
    const std::size_t end = std::min(n_rows, (block + 1) * kBlockRows);
    for (std::size_t row = block * kBlockRows; row < end; ++row) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (const LabelCell& cell : labels.cells(row)) {
        const auto label = static_cast<std::size_t>(cell.output);
        sums[static_cast<std::size_t>(hash.group[label])] +=
            hash.coefficient[label] * static_cast<double>(cell.gradient());
      }
      float* out = mixtures + row * hash.n_groups;
      for (std::size_t i = 0; i < hash.n_groups; ++i) out[i] = static_cast<float>(sums[i]);
    }
  });
}

}  // namespace polyleaf
