#include "growth/best_first.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <thread>

#include "growth/partition.hpp"
#include "rules/pruning.hpp"

namespace polyleaf {

Order BestFirst::run() {
  visit();
  return replay(nodes_, rules_.max_leaves);
}

void BestFirst::visit() {
  nodes_.emplace_back();
  nodes_[0].end = rows_.size();
  search_.search_root(nodes_[0]);
  settle(0, std::numeric_limits<double>::infinity());
  for (int index = take(); index >= 0; index = take()) {
    if (n_threads_ > 1 && !worth_all_threads(node(index), 1)) {
      open_.push_back(index);
      visit_side_by_side();
    } else {
      const Family family = found_family(index);
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
      over = index < 0 || worth_all_threads(node(index), n_taken + 1);
      if (over) {
        if (index >= 0) open_.push_back(index);
        return;
      }
      ++n_taken;
      const Family family = found_family(index);
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
    if (!is_hopeless(node(index).path_minimum, bar_.height())) return index;
    search_.drop(node(index));
  }
  return -1;
}

int BestFirst::take_open() {
  auto chosen = open_.end() - 1;  // depth first
  if (leaves_are_scarce(rules_.max_depth, rules_.max_leaves) && search_.has_room()) {
    chosen = std::max_element(open_.begin(), open_.end(),
                              [&](int a, int b) { return node(a).path_minimum < node(b).path_minimum; });
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
  Node& settled = node(index);
  if (settled.gain <= 0) {
    search_.drop(settled);
    return;
  }
  settled.path_minimum = path_minimum(parent_minimum, settled.gain);
  bar_.raise(settled.path_minimum, settled.split.score);
  open_.push_back(index);
}

void BestFirst::settle_children(const Node& parent) {
  const bool left_first = node(parent.left).gain >= node(parent.right).gain;  // depth first takes the last one pushed
  settle(left_first ? parent.right : parent.left, parent.path_minimum);
  settle(left_first ? parent.left : parent.right, parent.path_minimum);
}

// Makes the children of a node; their rows are not yet known.
BestFirst::Family BestFirst::found_family(int index) {
  Node& parent = node(index);
  parent.left = static_cast<int>(nodes_.size());
  parent.right = parent.left + 1;
  Node& left = nodes_.emplace_back();
  Node& right = nodes_.emplace_back();
  left.depth = right.depth = parent.depth + 1;
  left.path = 2 * parent.path;
  right.path = left.path + 1;
  return {parent, left, right};
}

void BestFirst::expand(const Family& family, const Team& team) {
  Node& parent = family.parent;
  const std::size_t n_left = partition_rows(matrix_, parent.split, parent.partition, rows_.data() + parent.begin,
                                            parent.n_rows(), spare_.data() + parent.begin, team);
  family.left.begin = parent.begin;
  family.left.end = family.right.begin = parent.begin + n_left;
  family.right.end = parent.end;
  search_.search_children(parent, family.left, family.right, team);
}

}  // namespace polyleaf
