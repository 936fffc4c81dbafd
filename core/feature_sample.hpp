// Which features a node may be split by: a sample of the tree's, of the level's, of its own.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "node.hpp"

namespace polyleaf {

struct FeatureSample {
  const std::uint8_t* mask = nullptr;  // of the whole tree; null: all
  double level_share = 1.0;            // of the tree's features, for each level
  double node_share = 1.0;             // of the level's features, for each node
  std::uint64_t key = 0;               // choices are keyed by it and by level or path
};

class FeatureSampler {
 public:
  FeatureSampler(const FeatureSample& sample, std::size_t n_features) : sample_(sample), n_features_(n_features) {}

  bool in_tree(std::size_t feature) const { return sample_.mask == nullptr || sample_.mask[feature] != 0; }
  // 1 where the node may be split by a feature; null: by all. Good until the next call with the same buffer.
  const std::uint8_t* mask(const Node& node, std::vector<std::uint8_t>& buffer);

 private:
  void sample(const std::uint8_t* from, double share, std::uint64_t key, std::vector<std::uint8_t>& out) const;

  const FeatureSample sample_;
  const std::size_t n_features_;
  std::mutex mutex_;  // threads share the levels
  std::deque<std::vector<std::uint8_t>> levels_;
};

}  // namespace polyleaf
