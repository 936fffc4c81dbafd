// Quantiles of numbers that are in several shards (leaves/renewed.hpp has those of numbers in one place).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/shard.hpp"
#include "leaves/renewed.hpp"

namespace polyleaf {

// Some numbers, ascending, as keys in the same order.
struct SortedNumbers {
  std::vector<std::uint64_t> keys;
  std::vector<double> weights;  // of each; empty: 1
};
SortedNumbers sort_numbers(const std::vector<double>& numbers);
SortedNumbers sort_numbers(std::vector<WeightedResidual>& numbers);

// How many columns of so many numbers, here, are to be given to shared_quantiles together, the same on all shards:
// their numbers take at most 256 MiB in each, unless it is a single column.
std::size_t columns_at_once(std::size_t n_here, const Shard& shard);

// The very values of residual_quantile on the numbers of all shards: for each entry of `here` that of its level.
// `weighted`: whether numbers have weights, here or elsewhere. All are found together, in about as many pairs of
// exchanges as the numbers have digits to the base 32, however many quantiles there are.
std::vector<double> shared_quantiles(std::vector<SortedNumbers> here, const std::vector<double>& levels, bool weighted,
                                     const Shard& shard, int n_threads);

}  // namespace polyleaf
