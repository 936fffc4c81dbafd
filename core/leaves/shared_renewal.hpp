// Leaf values from residuals (leaves/renewed.hpp), where the rows are in several shards.
#pragma once

#include "growth/contract.hpp"
#include "growth/leaf_rows.hpp"

namespace polyleaf {

// The very values of renew_leaves on all rows in one place.
void renew_shared_leaves(const GrowTask& task, int n_threads, const RowsInLeaves& places, GrownTree& tree);

}  // namespace polyleaf
