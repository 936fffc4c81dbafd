// A tree whose nodes a device has visited, level by level: which of them best-first growth keeps.
// leaves/visited_leaves.hpp makes it a whole tree.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "growth/grown_tree.hpp"
#include "rules/visited_node.hpp"

namespace polyleaf {

class VisitedTree {
 public:
  // The matrix must outlive the tree; only its features are looked at.
  VisitedTree(const BinnedMatrix& matrix, const std::vector<VisitedNode>& nodes, int max_leaves);

  const BinnedMatrix& matrix() const { return matrix_; }
  const Order& order() const { return order_; }
  // The places of the leaves' rows, in the order of the leaves.
  const std::vector<LeafRows>& leaves() const { return leaves_; }
  // The tree without values; covers are counts.
  GrownTree by_counts() const;

 private:
  const BinnedMatrix& matrix_;
  std::deque<Node> nodes_;
  Order order_;
  std::vector<LeafRows> leaves_;
};

}  // namespace polyleaf
