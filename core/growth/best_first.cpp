#include "growth/best_first.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "rules/pruning.hpp"

namespace polyleaf {

Order BestFirst::run() {
  visit();
  return replay(nodes_.all(), rules_.max_leaves);
}

void BestFirst::visit() {
  Node& root = nodes_.plant(n_rows_);
  const bool one_by_one = !search_.side_by_side();
  if (one_by_one || n_threads_ == 1 || search_.is_small(root)) return visit_alone({one_by_one ? n_threads_ : 1, 0});
  open_.push_back(0);
  note_open();
  Crew crew(n_threads_);
  parallel_for(n_threads_, static_cast<std::size_t>(n_threads_),
               [&](std::size_t, int thread) { visit_with(crew, thread); });
}

void BestFirst::visit_alone(const Team& team) {
  search_.search_root(nodes_.at(0), team);
  settle(0, std::numeric_limits<double>::infinity());
  for (int index = take(); index >= 0; index = take()) {
    const Family family = nodes_.found_family(index);
    expand(family, team);
    settle_children(family.parent);
  }
}

// Each thread takes the next open node by itself, or helps others, until all are visited. What comes of a node does not
// depend on when it is visited.
void BestFirst::visit_with(Crew& crew, int thread) {
  Crew::Patience patience;
  try {
    while (!over_.load(std::memory_order_acquire)) {
      if ((has_open_.load(std::memory_order_relaxed) && visit_next(crew, thread)) || crew.help(thread))
        patience.end();
      else
        patience.wait();
    }
  } catch (...) {
    over_ = true;
    throw;
  }
}

// False: no node is open.
bool BestFirst::visit_next(Crew& crew, int thread) {
  std::unique_lock<std::mutex> lock(mutex_);
  const bool is_root = !root_is_taken_;
  const int index = take();
  if (index < 0) {
    note_open();
    return false;
  }
  root_is_taken_ = true;
  ++n_taken_;
  Node& node = nodes_.at(index);
  std::optional<Family> family;
  if (!is_root) family.emplace(nodes_.found_family(index));
  // The threads that the node can count on.
  const int n_nodes = static_cast<int>(open_.size()) + n_taken_;
  const Team team{std::max(1, n_threads_ / n_nodes), thread, &crew};
  note_open();
  lock.unlock();
  is_root ? search_.search_root(node, team) : expand(*family, team);
  lock.lock();
  --n_taken_;
  is_root ? settle(index, std::numeric_limits<double>::infinity()) : settle_children(node);
  note_open();
  return true;
}

// For threads that look for something to do.
void BestFirst::note_open() {
  has_open_.store(!open_.empty(), std::memory_order_relaxed);
  if (open_.empty() && n_taken_ == 0) over_.store(true, std::memory_order_release);
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
