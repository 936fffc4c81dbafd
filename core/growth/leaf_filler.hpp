// What the leaves of a tree say, once its splits stand.
#pragma once

#include "growth/grown_tree.hpp"
#include "growth/leaf_rows.hpp"
#include "growth/replay.hpp"

namespace polyleaf {

class LeafFiller {
 public:
  virtual ~LeafFiller() = default;

  // Sets values and covers of the leaves from the rows they hold, and what the outputs gain where that is asked for.
  virtual void fill(const Order& order, const RowsInLeaves& places, GrownTree& tree) = 0;
};

}  // namespace polyleaf
