// What a shard finds in its tiles of features, as it tells the others (search/shared_search.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "search/node_searches.hpp"

namespace polyleaf {

// The sums of the rows that a split by this feature sends left, all channels.
struct LeftSums {
  std::int32_t feature = -1;
  std::vector<std::int32_t> sums;
};

// What is known of two nodes that are searched together: their best splits, and the sums of those that shards take for
// the best.
struct Findings {
  NodeSearches::Found splits;
  std::vector<LeftSums> left[2];
};

// What was found for some pairs of nodes, in words.
std::string written(const std::vector<Findings>& found);

// Adds what a shard wrote of the same pairs. Sums have so many channels.
void read_findings(const std::string& text, std::size_t n_channels, std::vector<Findings>& found);

}  // namespace polyleaf
