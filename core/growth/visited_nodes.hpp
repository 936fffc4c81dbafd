// The nodes of a tree while it is grown, in whatever order they are visited.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/threads.hpp"
#include "growth/node.hpp"
#include "growth/pruning_bar.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

struct Family {
  Node& parent;
  Node& left;
  Node& right;
};

class VisitedNodes {
 public:
  // `rows` is reordered such that the rows of every node stand side by side; `spare` is as long.
  VisitedNodes(const BinnedMatrix& matrix, const Rules& rules, std::vector<std::uint32_t>& rows,
               std::vector<std::uint32_t>& spare)
      : matrix_(matrix), rows_(rows), spare_(spare), bar_(rules.max_leaves) {}

  // The root, of so many rows.
  Node& plant(std::size_t n_rows);
  Node& at(int index) { return nodes_[static_cast<std::size_t>(index)]; }
  const std::deque<Node>& all() const { return nodes_; }

  // Takes note of a searched node. Whether it can be split; else it is a leaf.
  bool settle(int index, double parent_minimum);
  // Whether a node that can be split will not be, whatever else is found.
  bool is_hopeless(int index);
  // Makes the children of a node, whose rows are not yet known, and then tells those apart.
  Family found_family(int index);
  void part_rows(const Family& family, const Team& team);

 private:
  const BinnedMatrix& matrix_;
  std::vector<std::uint32_t>& rows_;
  std::vector<std::uint32_t>& spare_;
  std::deque<Node> nodes_;  // they stay where they are while others are added
  PruningBar bar_;
};

}  // namespace polyleaf
