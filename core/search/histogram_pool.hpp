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
#include "quantize/payload.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

// A fixed number of histograms, the lowest free one first. Threads may share it.
//
//   one histogram:  | output tile 0: feature tile 0, margin, feature tile 1, margin, ... | output tile 1: ... | ...
//
// Vectors of the last bin of a tile are read whole (base/lanes.hpp): the margin keeps them off what another thread
// writes.
class HistogramPool {
 public:
  // As many as are wanted and fit so many bytes. `memory` is kept between trees.
  HistogramPool(const BinnedMatrix& matrix, const PayloadLayout& layout, std::size_t wanted, std::size_t bytes,
                Buffer<std::int32_t>& memory);

  int acquire();  // -1: none is free
  void release(int& slot);
  int n_free() const;

  std::int32_t* at(int slot, const FeatureTile& tile, int output_tile) {
    const auto tile_number = static_cast<std::size_t>(&tile - tiles_);
    return memory_.data() + static_cast<std::size_t>(slot) * size_ + static_cast<std::size_t>(output_tile) * stride_ +
           tile.first_slot * width_ + tile_number * kMargin;
  }
  // From one tile of outputs to the next.
  std::size_t stride() const { return stride_; }

 private:
  static constexpr std::size_t kMargin = 16;  // a vector of numbers

  const FeatureTile* tiles_;
  const std::size_t width_, stride_, size_;
  Buffer<std::int32_t>& memory_;
  mutable std::mutex mutex_;
  std::vector<int> free_;  // descending
};

}  // namespace polyleaf
