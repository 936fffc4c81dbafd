#include "best_first.hpp"

#include <algorithm>
#include <limits>

#include "partition.hpp"

namespace polyleaf {

BestFirst::Order BestFirst::run() {
  visit();
  return replay();
}

void BestFirst::visit() {
  nodes_.emplace_back();
  nodes_[0].end = rows_.size();
  search_.search_root(nodes_[0]);
  settle(0, std::numeric_limits<double>::infinity());
  while (!open_.empty()) {
    const int index = take_open();
    if (hopeless(node(index)))
      search_.drop(node(index));
    else
      expand(index);
  }
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

void BestFirst::expand(int index) {
  const std::size_t begin = node(index).begin;
  const std::size_t n = node(index).n_rows();
  const std::size_t n_left =
      partition_rows(matrix_, node(index).split, rows_.data() + begin, n, spare_.data() + begin, n_threads_);
  const int left = static_cast<int>(nodes_.size());
  const int right = left + 1;
  nodes_.resize(nodes_.size() + 2);
  Node& parent = node(index);
  parent.left = left;
  parent.right = right;
  Node& l = node(left);
  Node& r = node(right);
  l.depth = r.depth = parent.depth + 1;
  l.path = 2 * parent.path;
  r.path = l.path + 1;
  l.begin = begin;
  l.end = r.begin = begin + n_left;
  r.end = begin + n;
  search_.search_children(parent, l, r);
  const bool left_first = l.gain >= r.gain;  // depth first takes the last one pushed
  settle(left_first ? right : left, parent.path_minimum);
  settle(left_first ? left : right, parent.path_minimum);
}

// The priority queue on the gains found; ties go to the node created first.
BestFirst::Order BestFirst::replay() const {
  struct Entry {
    double gain;
    int created;
    const Node* node;
  };
  const auto later = [](const Entry& a, const Entry& b) {
    return a.gain != b.gain ? a.gain < b.gain : a.created > b.created;
  };
  std::priority_queue<Entry, std::vector<Entry>, decltype(later)> queue(later);
  Order order;
  const auto create = [&](int index) {
    const Node* created = &nodes_[static_cast<std::size_t>(index)];
    if (created->left >= 0) queue.push({created->gain, static_cast<int>(order.nodes.size()), created});
    order.nodes.push_back(created);
    order.left.push_back(-1);
  };
  create(0);
  for (int n_leaves = 1; !queue.empty() && n_leaves < rules_.max_leaves; ++n_leaves) {
    Entry entry = queue.top();
    queue.pop();
    std::vector<Entry> equal;  // but for rounding, and created earlier or later
    while (!queue.empty() && queue.top().gain >= entry.gain - kRounding * largest_score_) {
      equal.push_back(queue.top());
      queue.pop();
    }
    for (Entry& other : equal) {
      if (other.created < entry.created) std::swap(other, entry);
      queue.push(other);
    }
    order.left[static_cast<std::size_t>(entry.created)] = static_cast<std::int32_t>(order.nodes.size());
    create(entry.node->left);
    create(entry.node->right);
  }
  return order;
}

}  // namespace polyleaf
