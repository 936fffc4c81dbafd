#include "growth/best_first.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <thread>

#include "rules/pruning.hpp"

namespace polyleaf {

Order BestFirst::run() {
  visit();
  return replay(nodes_.all(), rules_.max_leaves);
}

void BestFirst::visit() {
  search_.search_root(nodes_.plant(n_rows_));
  settle(0, std::numeric_limits<double>::infinity());
  for (int index = take(); index >= 0; index = take()) {
    if (n_threads_ > 1 && !worth_all_threads(nodes_.at(index), 1)) {
      open_.push_back(index);
      visit_side_by_side();
    } else {
      const Family family = nodes_.found_family(index);
      expand(family, {n_threads_, 0});
      settle_children(family.parent);
    }
  }
}

// Each thread takes the next open node by itself, until none is left or one is worth all threads. What comes of a node
// does not depend on when it is visited.
void BestFirst::visit_side_by_side() {
  std::mutex mutex;
  std::size_t n_taken = 0;
  bool over = false;
  parallel_for(n_threads_, static_cast<std::size_t>(n_threads_), [&](std::size_t, int thread) {
    std::unique_lock<std::mutex> lock(mutex);
    while (!over) {
      const int index = take();
      if (index < 0 && n_taken > 0) {  // others may open some
        lock.unlock();
        std::this_thread::yield();
        lock.lock();
        continue;
      }
      over = index < 0 || worth_all_threads(nodes_.at(index), n_taken + 1);
      if (over) {
        if (index >= 0) open_.push_back(index);
        return;
      }
      ++n_taken;
      const Family family = nodes_.found_family(index);
      lock.unlock();
      try {
        expand(family, {1, thread});
      } catch (...) {
        lock.lock();
        over = true;
        throw;
      }
      lock.lock();
      --n_taken;
      settle_children(family.parent);
    }
  });
}

// The next node to be expanded, no longer open; -1: there is none.
int BestFirst::take() {
  while (!open_.empty()) {
    const int index = take_open();
    if (!nodes_.is_hopeless(index)) return index;
    search_.drop(nodes_.at(index));
  }
  return -1;
}

int BestFirst::take_open() {
  auto chosen = open_.end() - 1;  // depth first
  if (leaves_are_scarce(rules_.max_depth, rules_.max_leaves) && search_.has_room()) {
    chosen = std::max_element(open_.begin(), open_.end(),
                              [&](int a, int b) { return nodes_.at(a).path_minimum < nodes_.at(b).path_minimum; });
  }
  const int index = *chosen;
  open_.erase(chosen);
  return index;
}

// Whether a thread should not have the node for itself. `n_taken` nodes are in work, this one included.
bool BestFirst::worth_all_threads(const Node& node, std::size_t n_taken) const {
  if (!search_.side_by_side()) return true;
  return !search_.is_small(node) && open_.size() + n_taken < static_cast<std::size_t>(n_threads_);
}

// Takes note of a searched node: open if it can be split, else a leaf.
void BestFirst::settle(int index, double parent_minimum) {
  if (nodes_.settle(index, parent_minimum))
    open_.push_back(index);
  else
    search_.drop(nodes_.at(index));
}

void BestFirst::settle_children(const Node& parent) {
  const bool left_first =
      nodes_.at(parent.left).gain >= nodes_.at(parent.right).gain;  // depth first takes the last one pushed
  settle(left_first ? parent.right : parent.left, parent.path_minimum);
  settle(left_first ? parent.left : parent.right, parent.path_minimum);
}

void BestFirst::expand(const Family& family, const Team& team) {
  nodes_.part_rows(family, team);
  family.left.n_rows = family.left.n_here();
  family.right.n_rows = family.right.n_here();
  search_.search_children(family.parent, family.left, family.right, team);
}

}  // namespace polyleaf
