// The rows of a node by the bins of a tile's features.
//
//   slots   | feature 0: 0      1       2 | feature 1: 3   4 | ...
//   rows    | rows of bin 0 | of bin 1 | ...
//
// Of a tile that skips frequent bins, the rows of those are not listed: a feature's bins are reached from both ends, up
// to the one with the most rows (feature_search.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "table/binned_matrix.hpp"

namespace polyleaf {

constexpr std::uint32_t kNoSlot = 0xffffffffu;

class BinRows {
 public:
  // The n rows rows[0], ..., of which it keeps the numbers 0, ...
  void list(const FeatureTile& tile, const std::uint32_t* rows, std::size_t n);

  std::size_t count(std::uint32_t slot) const { return count_[slot]; }
  // Where their numbers stand; of a slot whose rows are not listed there are none.
  const std::uint32_t* begin(std::uint32_t slot) const { return rows_.data() + end_[slot] - listed(slot); }
  const std::uint32_t* end(std::uint32_t slot) const { return rows_.data() + end_[slot]; }
  // The end of all that are listed.
  const std::uint32_t* last() const { return rows_.data() + n_listed_; }
  // The slot of a feature whose rows are not listed, or kNoSlot.
  std::uint32_t unlisted(std::size_t position) const { return skips_ ? tile_->frequent_slot[position] : kNoSlot; }

 private:
  std::size_t listed(std::uint32_t slot) const { return listed_[slot]; }
  template <class Each>
  void list_slots(std::size_t n, Each&& each);

  const FeatureTile* tile_ = nullptr;
  bool skips_ = false;
  std::size_t n_listed_ = 0;
  std::vector<std::uint32_t> count_, listed_, rows_;
  std::vector<std::size_t> end_;
};

}  // namespace polyleaf
