// One way to run loops on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>

#include "base/crew.hpp"

#if defined(POLYLEAF_STD_THREADS)
#include <thread>
#include <vector>
#elif defined(_OPENMP)
#include <omp.h>
#endif

namespace polyleaf {

// Fewer additions than this (a few tenths of a millisecond) are not worth waking other threads for: where another
// process holds a core, waiting for one of them takes milliseconds.
#if defined(POLYLEAF_STD_THREADS)
constexpr std::size_t kParallelWork = 1 << 10;  // that build looks for races, in small problems too
#else
constexpr std::size_t kParallelWork = std::size_t{1} << 20;
#endif
// The same for numbers of scattered rows.
constexpr std::size_t kParallelGathers = kParallelWork / 4;

// The size of a team that can be started, the calling thread in it: the one asked for, or 1 where there is no room for
// so many. OpenMP ends the process where a thread cannot be started: this tries it first, once for each thread that
// asks. What is computed does not depend on the number of threads.
int startable_threads(int team);

// Shares out tasks to a team: body(task, thread), which must not throw.
template <class Body>
void share_out(int team, std::size_t n_tasks, const Body& body) {
#if defined(POLYLEAF_STD_THREADS)
  // ThreadSanitizer does not know how OpenMP's threads wait for one another.
  std::atomic<std::size_t> next{0};
  const auto work = [&](int thread) {
    for (std::size_t task = next++; task < n_tasks; task = next++) body(task, thread);
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < team; ++thread) others.emplace_back(work, thread);
  work(0);
  for (std::thread& other : others) other.join();
#elif defined(_OPENMP)
#pragma omp parallel num_threads(team)
  {
    const int thread = omp_get_thread_num();
#pragma omp for schedule(dynamic, 1)
    for (std::ptrdiff_t task = 0; task < static_cast<std::ptrdiff_t>(n_tasks); ++task)
      body(static_cast<std::size_t>(task), thread);
  }
#else
  static_cast<void>(team);
  for (std::size_t task = 0; task < n_tasks; ++task) body(task, 0);
#endif
}

// Runs body(task, thread) for each task. With one thread OpenMP is not touched at all: a process forked after OpenMP
// was used would otherwise hang. An exception thrown by a body is rethrown here after the loop.
template <class Body>
void parallel_for(int n_threads, std::size_t n_tasks, Body&& body) {
  const auto wanted = std::min<std::size_t>(n_tasks, static_cast<std::size_t>(std::max(n_threads, 1)));
  const int team = wanted > 1 ? startable_threads(static_cast<int>(wanted)) : 1;
  if (team == 1) {
    for (std::size_t task = 0; task < n_tasks; ++task) body(task, 0);
    return;
  }
  std::exception_ptr failure;
  std::atomic<bool> failed{false};
  share_out(team, n_tasks, [&](std::size_t task, int thread) {
    if (failed.load(std::memory_order_relaxed)) return;
    try {
      body(task, thread);
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
}

// The threads a piece of work may use: all `size` of them, or `member` alone while the others do something else. Of a
// crew, about so many have nothing else to do, and any may come to help.
struct Team {
  int size = 1;
  int member = 0;  // the calling thread
  Crew* crew = nullptr;

  // Threads that may work, numbered from 0.
  int most_threads() const { return crew != nullptr ? crew->size() : size; }

  template <class Body>
  void run(bool worthwhile, std::size_t n_tasks, Body&& body) const {
    if (worthwhile && crew != nullptr) return crew->run(member, n_tasks, body);
    if (worthwhile && size > 1) return parallel_for(size, n_tasks, body);
    for (std::size_t task = 0; task < n_tasks; ++task) body(task, member);
  }
};

// As OpenMP has it from its environment.
int max_threads();

}  // namespace polyleaf
