// How the best split of a node is found. The order of the nodes, and what becomes of them, is not its business.
#pragma once

#include "base/threads.hpp"
#include "growth/node.hpp"

namespace polyleaf {

class SplitSearch {
 public:
  virtual ~SplitSearch() = default;

  // Sets split and gain of the root, and of the children of a split whose rows have been told apart. Only nodes that
  // may be split are searched; the outputs that sparse leaves hold are set for all.
  virtual void search_root(Node& root, const Team& team) = 0;
  virtual void search_children(Node& parent, Node& left, Node& right, const Team& team) = 0;
  // The node stays a leaf: what was kept for it is no longer needed.
  virtual void drop(Node& node) = 0;
  // Whether another open node can be afforded; if not, the nodes are visited depth first.
  virtual bool has_room() const = 0;
  // Whether threads may search the children of different nodes at the same time.
  virtual bool side_by_side() const = 0;
  // Whether a tree from this root is grown faster by one thread.
  virtual bool is_small(const Node& root) const = 0;
};

}  // namespace polyleaf
