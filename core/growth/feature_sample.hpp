// Which features a node may be split by: a sample of the tree's, of the level's, of its own, of those that may meet the
// features on the way to it.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "growth/node.hpp"

namespace polyleaf {

// Interaction constraints: only features of one group meet on the way from the root to a leaf.
struct InteractionGroups {
  std::size_t n_groups = 0;               // 0: no constraints
  const std::int64_t* begin = nullptr;    // n_groups + 1
  const std::int32_t* feature = nullptr;  // of one group after the other
};

struct FeatureSample {
  const std::uint8_t* mask = nullptr;  // of the whole tree; null: all
  double level_share = 1.0;            // of the tree's features, for each level
  double node_share = 1.0;             // of the level's features, for each node
  std::uint64_t key = 0;               // choices are keyed by it and by level or path
  InteractionGroups groups;
};

class FeatureSampler {
 public:
  FeatureSampler(const FeatureSample& sample, std::size_t n_features);

  // Whether all nodes of the tree may be split by the same features.
  bool same_for_all_nodes() const {
    return sample_.level_share >= 1.0 && sample_.node_share >= 1.0 && groups_of_.empty();
  }
  bool in_tree(std::size_t feature) const { return sample_.mask == nullptr || sample_.mask[feature] != 0; }
  // 1 where the node may be split by a feature; null: by all. Good until the next call with the same buffer.
  const std::uint8_t* mask(const Node& node, std::vector<std::uint8_t>& buffer);
  // Sets the groups of a root, and of the children of a split.
  void start(Node& root) const;
  void inherit(const Node& parent, Node& left, Node& right) const;

 private:
  void sample(const std::uint8_t* from, double share, std::uint64_t key, std::vector<std::uint8_t>& out) const;

  const FeatureSample sample_;
  const std::size_t n_features_;
  std::mutex mutex_;  // threads share the levels
  std::deque<std::vector<std::uint8_t>> levels_;
  std::vector<std::vector<std::int32_t>> groups_of_;  // per feature, ascending; empty without constraints
};

}  // namespace polyleaf
