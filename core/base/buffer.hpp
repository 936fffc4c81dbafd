// Memory that the hot loops work on.
#pragma once

#include <cstddef>
#include <utility>

namespace polyleaf {

// Memory on a cache-line boundary. Large pieces come from the system itself and go back to it, whatever else has been
// allocated since; they are in large pages where it has them: rows that are visited in any order then cost fewer walks
// through its tables.
void* take_memory(std::size_t bytes);
void give_back_memory(void* data, std::size_t bytes);

// An uninitialised array on a cache-line boundary, with slack behind it for whole-vector reads.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) : size_(size) {
    if (size > 0) data_ = static_cast<T*>(take_memory(bytes()));
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
    if (data_ != nullptr) give_back_memory(data_, bytes());
  }

  // At least of this size; what was in it is lost where it is not.
  void grow(std::size_t size) {
    if (size_ < size) *this = Buffer(size);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  static constexpr std::size_t kSlackBytes = 256;
  std::size_t bytes() const { return size_ * sizeof(T) + kSlackBytes; }
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace polyleaf
