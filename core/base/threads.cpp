#include "base/threads.hpp"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace polyleaf {
namespace {

// Whether so many threads can be there at the same time: each waits until the last one has been started.
bool can_start(int n) {
  std::mutex mutex;
  std::condition_variable changed;
  bool all_tried = false;
  std::vector<std::thread> started;
  started.reserve(static_cast<std::size_t>(n));
  try {
    while (static_cast<int>(started.size()) < n)
      started.emplace_back([&] {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return all_tried; });
      });
  } catch (const std::exception&) {  // there is no room for one more, or for what it needs
  }
  {
    const std::lock_guard<std::mutex> lock(mutex);
    all_tried = true;
  }
  changed.notify_all();
  for (std::thread& one : started) one.join();
  return static_cast<int>(started.size()) == n;
}

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kUntilTriedAgain{1};

}  // namespace

int startable_threads(int team) {
  thread_local int known = 1;
  thread_local Clock::time_point refused{};
  if (team <= known) return team;
  if (refused != Clock::time_point{} && Clock::now() - refused < kUntilTriedAgain) return 1;
  if (!can_start(team - 1)) {
    refused = Clock::now();
    return 1;
  }
  known = team;
  return team;
}

int max_threads() {
#if defined(POLYLEAF_STD_THREADS)
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
#elif defined(_OPENMP)
  return omp_get_max_threads();
#else
  return 1;
#endif
}

}  // namespace polyleaf
