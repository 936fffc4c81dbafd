// Histograms of open nodes, kept until their children are searched: that of the larger child is its parent's minus its
// sibling's.
//
// What it buys: a sixth to a half of a round, on every work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/buffer.hpp"
#include "search/histogram_layout.hpp"
#include "search/side_bounds.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

// A fixed number of histograms, the lowest free one first. Threads may share it.
class HistogramPool {
 public:
  // `memory` is kept between trees. Sides are remembered, too, where there is memory for them.
  HistogramPool(const BinnedMatrix& matrix, const HistogramLayout& layout, std::size_t count,
                Buffer<std::int32_t>& memory, Buffer<float>* sides = nullptr);

  int acquire();  // -1: none is free
  void release(int& slot);
  int n_free() const;

  // `at`: the number of a tile of features.
  std::int32_t* at(int slot, std::size_t at, int output_tile) {
    return memory_.data() + static_cast<std::size_t>(slot) * layout_.size() + layout_.offset(matrix_, at, output_tile);
  }
  // From one tile of outputs to the next.
  std::size_t stride() const { return layout_.stride(); }
  // Null: they are not remembered, or there is no slot.
  SideArrays sides(int slot) {
    if (sides_ == nullptr || slot < 0) return {};
    return {sides_->data() + static_cast<std::size_t>(slot) * SideArrays::size(n_features_), n_features_};
  }

 private:
  const BinnedMatrix& matrix_;
  const HistogramLayout layout_;
  Buffer<std::int32_t>& memory_;
  Buffer<float>* const sides_;
  const std::size_t n_features_;
  mutable std::mutex mutex_;
  std::vector<int> free_;  // descending
};

// How many histograms of a size fit so many bytes.
inline std::size_t affordable_histograms(std::size_t size, std::size_t bytes) {
  return size == 0 ? 0 : bytes / (size * sizeof(std::int32_t));
}

}  // namespace polyleaf
