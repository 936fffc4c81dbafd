// Renewed leaves (leaves/renewed.hpp) of rows that are in several shards.
#pragma once

#include "growth/contract.hpp"
#include "growth/leaf_rows.hpp"

namespace polyleaf {

// The very values of renew_leaves on all rows in one place. The quantiles of all leaves are found digit by digit of
// their bits: eight exchanges of the weight that each digit has, and one of the residuals that come next.
void renew_shared_leaves(const GrowTask& task, int n_threads, const RowsInLeaves& places, GrownTree& tree);

}  // namespace polyleaf
