#include "growth/replay.hpp"

#include <algorithm>
#include <queue>

#include "rules/pruning.hpp"

namespace polyleaf {

Order replay(const std::deque<Node>& nodes, int max_leaves) {
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
  order.nodes.reserve(nodes.size());
  order.left.reserve(nodes.size());
  double largest_score = 0.0;
  const auto create = [&](int index) {
    const Node* created = &nodes[static_cast<std::size_t>(index)];
    if (created->gain > 0) largest_score = std::max(largest_score, created->split.score);
    if (created->left >= 0) queue.push({created->gain, static_cast<int>(order.nodes.size()), created});
    order.nodes.push_back(created);
    order.left.push_back(-1);
  };
  create(0);
  for (int n_leaves = 1; !queue.empty() && n_leaves < max_leaves; ++n_leaves) {
    Entry entry = queue.top();
    queue.pop();
    std::vector<Entry> equal;  // but for rounding, and created earlier or later
    while (!queue.empty() && gains_are_equal(queue.top().gain, entry.gain, largest_score)) {
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
