// A tree whose nodes a device has visited, level by level: which of them best-first growth keeps, and their arrays.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "growth/grown_tree.hpp"
#include "leaves/output_gain.hpp"
#include "rules/visited_node.hpp"

namespace polyleaf {

class VisitedTree {
 public:
  // The matrix must outlive the tree; only its features are looked at.
  VisitedTree(const BinnedMatrix& matrix, const std::vector<VisitedNode>& nodes, int max_leaves);

  // The places of the leaves' rows, in the order of the leaves.
  const std::vector<LeafRows>& leaves() const { return leaves_; }
  // The tree without values; covers are counts.
  GrownTree by_counts() const;
  // The whole tree. Per leaf: `values` (outputs of `terms`), `cover`, and, where leaves were filled with rows that the
  // splits did not see, `all_rows`, their number; else null. `leaf_sums` may be null: gains are then not shared out.
  GrownTree finish(const float* values, const double* cover, const std::int64_t* all_rows, const GainTerms& terms,
                   const double* leaf_sums) const;

 private:
  const BinnedMatrix& matrix_;
  std::deque<Node> nodes_;
  Order order_;
  std::vector<LeafRows> leaves_;
};

}  // namespace polyleaf
