// The way of every tree of the CPU: its splits, best first; its arrays; its leaves.
#pragma once

#include <cstdint>
#include <vector>

#include "growth/contract.hpp"
#include "growth/leaf_filler.hpp"
#include "growth/leaf_rows.hpp"
#include "growth/level_search.hpp"
#include "growth/split_search.hpp"

namespace polyleaf {

// What growers have in common. Its memory is kept from tree to tree.
class TreeGrowth {
 public:
  // The rows that a task grows from. While the tree grows they stand as partition.hpp shows.
  const std::vector<std::uint32_t>& take_rows(const GrowTask& task);
  // The tree of the rows taken; the leaf of each row is written where the task asks for it.
  GrownTree run(const GrowTask& task, const GrowSettings& settings, SplitSearch& search, LeafFiller& filler);
  // The same where the rows taken are those of one of several shards.
  GrownTree run(const GrowTask& task, const GrowSettings& settings, LevelSearch& search, LeafFiller& filler);
  // All rows of the table in the leaves of a tree whose splits stand; the tree gets the counts of its leaves.
  const RowsInLeaves& place_all_rows(const GrowTask& task, int n_threads, GrownTree& tree);
  // The rows that the leaves of the last tree were filled with.
  const RowsInLeaves& places() const { return places_; }

 private:
  GrownTree finish(const GrowTask& task, const GrowSettings& settings, const Order& order, LeafFiller& filler);

  std::vector<std::uint32_t> rows_, spare_;
  RowsInLeaves places_;
};

}  // namespace polyleaf
