#include "best_first.hpp"

#include <algorithm>
#include <limits>

#include "partition.hpp"

namespace polyleaf {
namespace {

// Small nodes that are expanded together, per thread: enough to keep all of them busy, and few that turn out to have
// been hopeless.
constexpr std::size_t kBatch = 2;

}  // namespace

Order BestFirst::run() {
  visit();
  return replay(nodes_, rules_.max_leaves, largest_score_);
}

void BestFirst::visit() {
  nodes_.emplace_back();
  nodes_[0].end = rows_.size();
  search_.search_root(nodes_[0]);
  settle(0, std::numeric_limits<double>::infinity());
  while (!open_.empty()) expand(take_batch());
}

// Nodes to expand next: a large one, or some small ones, which threads then share out among them. What comes of a node
// does not depend on when it is visited.
std::vector<int> BestFirst::take_batch() {
  const std::size_t most = n_threads_ > 1 ? kBatch * static_cast<std::size_t>(n_threads_) : 1;
  std::vector<int> batch;
  while (!open_.empty() && batch.size() < most) {
    const int index = take_open();
    if (hopeless(node(index))) {
      search_.drop(node(index));
      continue;
    }
    const bool small = search_.is_small(node(index));
    if (!small && !batch.empty()) {
      open_.push_back(index);
      break;
    }
    batch.push_back(index);
    if (!small) break;
  }
  return batch;
}

int BestFirst::take_open() {
  auto chosen = open_.end() - 1;  // depth first
  if (leaves_are_scarce(rules_) && search_.has_room()) {
    chosen = std::max_element(open_.begin(), open_.end(),
                              [&](int a, int b) { return node(a).path_minimum < node(b).path_minimum; });
  }
  const int index = *chosen;
  open_.erase(chosen);
  return index;
}

bool BestFirst::hopeless(const Node& node) const {
  return best_minima_.size() + 1 == static_cast<std::size_t>(rules_.max_leaves) &&
         node.path_minimum < best_minima_.top() - kRounding * largest_score_;
}

// Takes note of a searched node: open if it can be split, else a leaf.
void BestFirst::settle(int index, double parent_minimum) {
  Node& settled = node(index);
  if (settled.gain <= 0) {
    search_.drop(settled);
    return;
  }
  largest_score_ = std::max(largest_score_, settled.split.score);
  settled.path_minimum = std::min(parent_minimum, settled.gain);
  best_minima_.push(settled.path_minimum);
  if (best_minima_.size() + 1 > static_cast<std::size_t>(rules_.max_leaves)) best_minima_.pop();
  open_.push_back(index);
}

void BestFirst::expand(const std::vector<int>& batch) {
  const int first = static_cast<int>(nodes_.size());
  nodes_.resize(nodes_.size() + 2 * batch.size());
  const auto left_of = [&](std::size_t i) { return first + 2 * static_cast<int>(i); };
  if (batch.size() == 1)
    expand_node(batch[0], first, {n_threads_, 0});
  else
    parallel_for(n_threads_, batch.size(),
                 [&](std::size_t i, int thread) { expand_node(batch[i], left_of(i), {1, thread}); });
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const int left = left_of(i);
    const int right = left + 1;
    const double minimum = node(batch[i]).path_minimum;
    const bool left_first = node(left).gain >= node(right).gain;  // depth first takes the last one pushed
    settle(left_first ? right : left, minimum);
    settle(left_first ? left : right, minimum);
  }
}

void BestFirst::expand_node(int index, int left, const Team& team) {
  Node& parent = node(index);
  const std::size_t n_left = partition_rows(matrix_, parent.split, parent.sides, rows_.data() + parent.begin,
                                            parent.n_rows(), spare_.data() + parent.begin, team);
  parent.left = left;
  parent.right = left + 1;
  Node& l = node(left);
  Node& r = node(left + 1);
  l.depth = r.depth = parent.depth + 1;
  l.path = 2 * parent.path;
  r.path = l.path + 1;
  l.begin = parent.begin;
  l.end = r.begin = parent.begin + n_left;
  r.end = parent.end;
  search_.search_children(parent, l, r, team);
}

}  // namespace polyleaf
