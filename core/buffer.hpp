// Memory that the hot loops work on.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace polyleaf {

// Asks the system for large pages where it leaves that to programs: rows that are visited in any order then cost fewer
// walks through its tables. Small pieces are left alone.
void prefer_large_pages(void* data, std::size_t bytes);

// An uninitialised array on a cache-line boundary, with slack behind it for whole-vector reads.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) : size_(size) {
    if (size == 0) return;
    const std::size_t bytes = size * sizeof(T) + kSlackBytes;
    data_ = static_cast<T*>(::operator new(bytes, std::align_val_t{64}));
    prefer_large_pages(data_, bytes);
  }
  Buffer(Buffer&& other) noexcept : data_(other.data_), size_(other.size_) {
    other.data_ = nullptr;
    other.size_ = 0;
  }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_ != nullptr) ::operator delete(data_, std::align_val_t{64});
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  static constexpr std::size_t kSlackBytes = 256;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace polyleaf
