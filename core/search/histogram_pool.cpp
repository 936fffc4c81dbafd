#include "search/histogram_pool.hpp"

#include <algorithm>
#include <functional>

namespace polyleaf {

HistogramPool::HistogramPool(const BinnedMatrix& matrix, const PayloadLayout& layout, std::size_t wanted,
                             std::size_t bytes, Buffer<std::int32_t>& memory)
    : tiles_(matrix.tiles.data()),
      width_(static_cast<std::size_t>(layout.width)),
      stride_(matrix.n_slots * width_ + matrix.tiles.size() * kMargin),
      size_(stride_ * static_cast<std::size_t>(layout.n_tiles)),
      memory_(memory) {
  const std::size_t affordable = size_ == 0 ? 0 : bytes / (size_ * sizeof(std::int32_t));
  const std::size_t count = std::min(wanted, affordable);
  for (std::size_t slot = count; slot-- > 0;) free_.push_back(static_cast<int>(slot));
  if (memory_.size() < count * size_) memory_ = Buffer<std::int32_t>(count * size_);
}

int HistogramPool::acquire() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (free_.empty()) return -1;
  const int slot = free_.back();
  free_.pop_back();
  return slot;
}

void HistogramPool::release(int& slot) {
  if (slot < 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  free_.insert(std::upper_bound(free_.begin(), free_.end(), slot, std::greater<int>()), slot);
  slot = -1;
}

int HistogramPool::n_free() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int>(free_.size());
}

}  // namespace polyleaf
