#include "base/crew.hpp"

#include <thread>

namespace polyleaf {
namespace {

constexpr int kSpins = 64;  // some microseconds

inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

// Whether there was anything left to do.
bool Crew::Loop::work(int member) {
  bool any = false;
  while (next.load(std::memory_order_relaxed) < n_tasks) {
    const std::size_t task = next.fetch_add(1, std::memory_order_relaxed);
    if (task >= n_tasks) break;
    any = true;
    if (failed.load(std::memory_order_relaxed)) continue;
    try {
      call(body, task, member);
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
    }
  }
  return any;
}

void Crew::run_loop(int member, Loop& loop) {
  Post& post = posts_[static_cast<std::size_t>(member)];
  const bool alone = posts_.size() == 1 || loop.n_tasks < 2;
  if (!alone) post.loop.store(&loop);
  loop.work(member);
  if (!alone) {
    post.loop.store(nullptr);
    Patience patience;
    while (post.n_looking.load() > 0) patience.wait();
  }
  if (loop.failure) std::rethrow_exception(loop.failure);
}

bool Crew::help(int member) {
  const auto n = posts_.size();
  for (std::size_t i = 1; i < n; ++i) {
    Post& post = posts_[(static_cast<std::size_t>(member) + i) % n];
    if (post.loop.load(std::memory_order_relaxed) == nullptr) continue;
    ++post.n_looking;  // from here on a loop that is still there stays
    Loop* loop = post.loop.load();
    const bool helped = loop != nullptr && loop->work(member);
    --post.n_looking;
    if (helped) return true;
  }
  return false;
}

void Crew::Patience::wait() {
  if (n_waits_ < kSpins) {
    ++n_waits_;
    pause();
  } else {
    std::this_thread::yield();
  }
}

}  // namespace polyleaf
