// Which side of a split a row goes to.
//
// A tree has one array of row numbers. The rows of a node stand side by side in it, ascending; a split of the node
// tells them apart within its place, so that those of its children stand side by side, too:
//
//   root                | 0  1  2  3  4  5  6  7  8  9 |
//   its children        | 0  2  3  7 | 1  4  5  6  8  9 |
//   the right one's     | 0  2  3  7 | 1  6  8 | 4  5  9 |
//
// A node is a pair of positions, begin and end; the leaves of the grown tree divide the whole array.
#pragma once

#include <cstdint>
#include <vector>

#include "base/threads.hpp"
#include "growth/category_partition.hpp"
#include "rules/scoring.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

// Moves the rows that go left to the front of [rows, rows + n), keeping the order on both sides, and returns how many
// they are. `spare` holds at least n. `partition` counts where the split's feature is categorical.
std::size_t partition_rows(const BinnedMatrix& matrix, const Candidate& split, const CategoryPartition& partition,
                           std::uint32_t* rows, std::size_t n, std::uint32_t* spare, const Team& team);

}  // namespace polyleaf
