// Which side of a split a row goes to.
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
