// One way to run loops on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>

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

}  // namespace polyleaf
