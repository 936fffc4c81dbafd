#include "search/histogram_pool.hpp"

#include <algorithm>
#include <functional>

namespace polyleaf {

HistogramPool::HistogramPool(const BinnedMatrix& matrix, const HistogramLayout& layout, std::size_t count,
                             Buffer<std::int32_t>& memory, Buffer<float>* sides)
    : matrix_(matrix), layout_(layout), memory_(memory), sides_(sides), n_features_(matrix.n_in_tiles()) {
  for (std::size_t slot = count; slot-- > 0;) free_.push_back(static_cast<int>(slot));
  memory_.grow(count * layout_.size());
  if (sides_ != nullptr) sides_->grow(count * SideArrays::size(n_features_));
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
