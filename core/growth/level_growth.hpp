// Growth level by level: all nodes of a level are searched together, so that shards talk to each other a few times a
// level, however many leaves there are. The best-first tree is read off the gains afterwards, as in best_first.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "base/shard.hpp"
#include "growth/level_search.hpp"
#include "growth/replay.hpp"
#include "growth/visited_nodes.hpp"
#include "rules/scoring.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

class LevelGrowth {
 public:
  // `rows` is reordered such that the rows of every node stand side by side; `spare` is as long.
  LevelGrowth(const BinnedMatrix& matrix, const Rules& rules, LevelSearch& search, std::vector<std::uint32_t>& rows,
              std::vector<std::uint32_t>& spare, int n_threads)
      : rules_(rules),
        search_(search),
        n_here_(rows.size()),
        n_threads_(n_threads),
        nodes_(matrix, rules, rows, spare) {}

  Order run();

 private:
  void settle(int index, double parent_minimum, std::vector<int>& open);

  const Rules& rules_;
  LevelSearch& search_;
  const std::size_t n_here_;
  const int n_threads_;
  VisitedNodes nodes_;
};

}  // namespace polyleaf
