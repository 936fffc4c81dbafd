// Threads that work side by side, and help each other out.
//
// Each member of a crew has work of its own, or none. A loop of one member stands on a board while it runs; members
// without work take tasks of such loops. So nobody waits while there is anything to do: a large piece of work is done
// by all, many small ones by one member each, without anybody deciding which it is.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <vector>

namespace polyleaf {

class Crew {
 public:
  explicit Crew(int size) : posts_(static_cast<std::size_t>(size)) {}
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int size() const { return static_cast<int>(posts_.size()); }

  // Runs body(task, member) for each task: by the calling member, and by others that have nothing else to do. An
  // exception thrown by a body is rethrown here when nobody works on the loop any more. A body starts no loop.
  template <class Body>
  void run(int member, std::size_t n_tasks, Body& body) {
    Loop loop{[](void* of, std::size_t task, int thread) { (*static_cast<Body*>(of))(task, thread); }, &body, n_tasks};
    run_loop(member, loop);
  }

  // Takes tasks of another member's loop, as long as there are any. False: there was no such loop.
  bool help(int member);

  // What a member does that found nothing to do: it lets others have the processor, after a short while.
  class Patience {
   public:
    void wait();
    void end() { n_waits_ = 0; }

   private:
    int n_waits_ = 0;
  };

 private:
  struct Loop {
    void (*call)(void* body, std::size_t task, int member);
    void* body;
    std::size_t n_tasks;
    std::atomic<std::size_t> next{0};
    std::atomic<bool> failed{false};
    std::exception_ptr failure{};

    Loop(void (*with)(void*, std::size_t, int), void* of, std::size_t n) : call(with), body(of), n_tasks(n) {}
    bool work(int member);
  };
  // Where a member's loop stands, and how many others are looking at it: it must not go away under their eyes.
  struct alignas(64) Post {
    std::atomic<Loop*> loop{nullptr};
    std::atomic<int> n_looking{0};
  };

  void run_loop(int member, Loop& loop);

  std::vector<Post> posts_;
};

}  // namespace polyleaf
