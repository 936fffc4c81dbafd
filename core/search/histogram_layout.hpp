// Where the sums of a node stand, in some neighbouring tiles of features:
//
//   | output tile 0: feature tile 0, margin, feature tile 1, margin, ... | output tile 1: ... | ...
//
// Vectors of the last bin of a tile are read whole (kOutputs of kernels/output_sums.hpp): the margin keeps them off
// what another thread writes.
#pragma once

#include <cstddef>

#include "quantize/payload.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

class HistogramLayout {
 public:
  static constexpr std::size_t kMargin = 16;  // a vector of numbers

  // Of the tiles from `first_tile` on, up to `last_tile`.
  HistogramLayout(const BinnedMatrix& matrix, const PayloadLayout& layout, std::size_t first_tile,
                  std::size_t last_tile)
      : first_tile_(first_tile),
        last_tile_(last_tile),
        first_slot_(first_tile < last_tile ? matrix.tiles[first_tile].first_slot : 0),
        width_(static_cast<std::size_t>(layout.width)) {
    std::size_t n_slots = 0;
    for (std::size_t at = first_tile; at < last_tile; ++at) n_slots += matrix.tiles[at].n_slots();
    stride_ = n_slots * width_ + (last_tile - first_tile) * kMargin;
    size_ = stride_ * static_cast<std::size_t>(layout.n_tiles);
  }
  HistogramLayout(const BinnedMatrix& matrix, const PayloadLayout& layout)
      : HistogramLayout(matrix, layout, 0, matrix.tiles.size()) {}

  std::size_t first_tile() const { return first_tile_; }
  std::size_t last_tile() const { return last_tile_; }
  // Where a tile of features begins in a tile of outputs. `at`: the number of the former.
  std::size_t offset(const BinnedMatrix& matrix, std::size_t at, int output_tile) const {
    return static_cast<std::size_t>(output_tile) * stride_ + (matrix.tiles[at].first_slot - first_slot_) * width_ +
           (at - first_tile_) * kMargin;
  }
  // From one tile of outputs to the next, and of all of them.
  std::size_t stride() const { return stride_; }
  std::size_t size() const { return size_; }

 private:
  std::size_t first_tile_, last_tile_, first_slot_, width_;
  std::size_t stride_ = 0, size_ = 0;
};

}  // namespace polyleaf
