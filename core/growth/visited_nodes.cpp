#include "growth/visited_nodes.hpp"

#include "growth/partition.hpp"
#include "rules/pruning.hpp"

namespace polyleaf {

Node& VisitedNodes::plant(std::size_t n_rows) {
  Node& root = nodes_.emplace_back();
  root.end = rows_.size();
  root.n_rows = n_rows;
  return root;
}

bool VisitedNodes::settle(int index, double parent_minimum) {
  Node& settled = at(index);
  if (settled.gain <= 0) return false;
  settled.path_minimum = path_minimum(parent_minimum, settled.gain);
  bar_.raise(settled.path_minimum, settled.split.score);
  return true;
}

bool VisitedNodes::is_hopeless(int index) { return polyleaf::is_hopeless(at(index).path_minimum, bar_.height()); }

Family VisitedNodes::found_family(int index) {
  Node& parent = at(index);
  parent.left = static_cast<int>(nodes_.size());
  parent.right = parent.left + 1;
  Node& left = nodes_.emplace_back();
  Node& right = nodes_.emplace_back();
  left.depth = right.depth = parent.depth + 1;
  left.path = 2 * parent.path;
  right.path = left.path + 1;
  return {parent, left, right};
}

void VisitedNodes::part_rows(const Family& family, const Team& team) {
  const Node& parent = family.parent;
  const std::size_t n_left = partition_rows(matrix_, parent.split, parent.partition, rows_.data() + parent.begin,
                                            parent.n_here(), spare_.data() + parent.begin, team);
  family.left.begin = parent.begin;
  family.left.end = family.right.begin = parent.begin + n_left;
  family.right.end = parent.end;
}

}  // namespace polyleaf
