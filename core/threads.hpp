// One way to run loops on several threads, and the buffers they work on.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <new>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace polyleaf {

// Fewer additions than this (a few tenths of a millisecond) are not worth waking other threads for: where another
// process holds a core, waiting for one of them takes milliseconds.
constexpr std::size_t kParallelWork = std::size_t{1} << 20;
// The same for numbers of scattered rows.
constexpr std::size_t kParallelGathers = kParallelWork / 4;

// Runs body(task, thread) for each task. With one thread OpenMP is not touched at all: a process forked after OpenMP
// was used would otherwise hang. An exception thrown by a body is rethrown here after the loop.
template <class Body>
void parallel_for(int n_threads, std::size_t n_tasks, Body&& body) {
  if (n_threads > 1 && n_tasks > 1) {
#ifdef _OPENMP
    const int team = static_cast<int>(std::min<std::size_t>(n_tasks, static_cast<std::size_t>(n_threads)));
    std::exception_ptr failure;
    std::atomic<bool> failed{false};
#pragma omp parallel num_threads(team)
    {
      const int thread = omp_get_thread_num();
#pragma omp for schedule(dynamic, 1)
      for (std::ptrdiff_t task = 0; task < static_cast<std::ptrdiff_t>(n_tasks); ++task) {
        if (failed.load(std::memory_order_relaxed)) continue;
        try {
          body(static_cast<std::size_t>(task), thread);
        } catch (...) {
          if (!failed.exchange(true)) failure = std::current_exception();
        }
      }
    }
    if (failure) std::rethrow_exception(failure);
    return;
#endif
  }
  for (std::size_t task = 0; task < n_tasks; ++task) body(task, 0);
}

// The threads a piece of work may use: all `size` of them, or `member` alone while the others do something else.
struct Team {
  int size = 1;
  int member = 0;  // the calling thread

  template <class Body>
  void run(bool worthwhile, std::size_t n_tasks, Body&& body) const {
    if (worthwhile && size > 1) return parallel_for(size, n_tasks, body);
    for (std::size_t task = 0; task < n_tasks; ++task) body(task, member);
  }
};

inline int max_threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

// An uninitialised array on a cache-line boundary, with slack behind it for whole-vector reads.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) : size_(size) {
    if (size > 0) data_ = static_cast<T*>(::operator new(size * sizeof(T) + kSlackBytes, std::align_val_t{64}));
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
