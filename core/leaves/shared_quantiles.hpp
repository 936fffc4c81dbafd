// Quantiles of numbers that are in several shards (leaves/renewed.hpp has those of numbers in one place).
#pragma once

#include <cstdint>
#include <vector>

#include "base/shard.hpp"
#include "growth/contract.hpp"
#include "growth/leaf_rows.hpp"
#include "leaves/renewed.hpp"

namespace polyleaf {

// Some numbers, ascending, as keys in the same order.
struct SortedNumbers {
  std::vector<std::uint64_t> keys;
  std::vector<double> weights;  // of each; empty: 1
};
SortedNumbers sort_numbers(const std::vector<double>& numbers);
SortedNumbers sort_numbers(std::vector<WeightedResidual>& numbers);

// The very values of residual_quantile on the numbers of all shards: for each entry of `here` that of its level.
// `weighted`: whether numbers have weights, here or elsewhere. Quantiles are found digit by digit of their bits: eight
// exchanges of the weight that each digit has, and two more.
std::vector<double> shared_quantiles(const std::vector<SortedNumbers>& here, const std::vector<double>& levels,
                                     bool weighted, const Shard& shard, int n_threads);

// The very values of renew_leaves on all rows in one place.
void renew_shared_leaves(const GrowTask& task, int n_threads, const RowsInLeaves& places, GrownTree& tree);

}  // namespace polyleaf
