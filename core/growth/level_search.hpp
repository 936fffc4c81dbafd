// How the best splits of all nodes of a level are found, where the rows of a node are in several places.
#pragma once

#include <vector>

#include "growth/visited_nodes.hpp"

namespace polyleaf {

class LevelSearch {
 public:
  virtual ~LevelSearch() = default;

  // Sets the rows in all shards, split and gain of the root.
  virtual void search_root(Node& root) = 0;
  // Sets the rows in all shards, split and gain of the children of several nodes; their rows here are told apart.
  virtual void search_level(const std::vector<Family>& families) = 0;
  // The node stays a leaf: what was kept for it is no longer needed.
  virtual void drop(Node& node) = 0;
};

}  // namespace polyleaf
