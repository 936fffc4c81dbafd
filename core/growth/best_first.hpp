// Best-first growth (Algorithm 5 of the paper) without a queue of histograms.
//
// A node's best split does not depend on when the node is visited, so nodes are visited in the order that needs little
// memory, and the best-first tree is read off afterwards by replaying the priority queue on the gains found. A node
// whose path-minimum gain lies strictly below that of max_leaves - 1 others is never part of that tree and is not
// visited.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/threads.hpp"
#include "growth/replay.hpp"
#include "growth/split_search.hpp"
#include "growth/visited_nodes.hpp"
#include "rules/scoring.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

class BestFirst {
 public:
  // `rows` is reordered such that the rows of every node stand side by side; `spare` is as long.
  BestFirst(const BinnedMatrix& matrix, const Rules& rules, SplitSearch& search, std::vector<std::uint32_t>& rows,
            std::vector<std::uint32_t>& spare, int n_threads)
      : rules_(rules),
        search_(search),
        n_rows_(rows.size()),
        n_threads_(n_threads),
        nodes_(matrix, rules, rows, spare) {}

  Order run();

 private:
  void visit();
  void visit_alone(const Team& team);
  void visit_with(Crew& crew, int thread);
  bool visit_next(Crew& crew, int thread);
  void note_open();
  int take();
  int take_open();
  void settle(int index, double parent_minimum);
  void settle_children(const Node& parent);
  void expand(const Family& family, const Team& team);

  const Rules& rules_;
  SplitSearch& search_;
  const std::size_t n_rows_;
  int n_threads_;
  VisitedNodes nodes_;
  std::vector<int> open_;
  // Of several threads: the lock of all above, the nodes in work, and what can be asked without it.
  std::mutex mutex_;
  int n_taken_ = 0;
  bool root_is_taken_ = false;
  std::atomic<bool> has_open_{false}, over_{false};
};

}  // namespace polyleaf
