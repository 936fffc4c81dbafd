// Which side of a split a row goes to.
#pragma once

#include <cstdint>
#include <vector>

#include "binned_matrix.hpp"
#include "rules.hpp"
#include "threads.hpp"

namespace polyleaf {

// Moves the rows that go left to the front of [rows, rows + n), keeping the order on both sides, and returns how many
// they are. `spare` holds at least n.
std::size_t partition_rows(const BinnedMatrix& matrix, const Candidate& split, std::uint32_t* rows, std::size_t n,
                           std::uint32_t* spare, const Team& team);

}  // namespace polyleaf
