#include "growth/feature_sample.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

namespace polyleaf {
namespace {

// The finaliser of splitmix64: neighbouring numbers become unrelated ones.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

FeatureSampler::FeatureSampler(const FeatureSample& sample, std::size_t n_features)
    : sample_(sample), n_features_(n_features) {
  const InteractionGroups& groups = sample_.groups;
  if (groups.n_groups == 0) return;
  groups_of_.resize(n_features_);
  for (std::size_t g = 0; g < groups.n_groups; ++g)
    for (std::int64_t i = groups.begin[g]; i < groups.begin[g + 1]; ++i)
      groups_of_[static_cast<std::size_t>(groups.feature[i])].push_back(static_cast<std::int32_t>(g));
}

void FeatureSampler::start(Node& root) const {
  root.groups.resize(sample_.groups.n_groups);
  std::iota(root.groups.begin(), root.groups.end(), 0);
}

void FeatureSampler::inherit(const Node& parent, Node& left, Node& right) const {
  if (groups_of_.empty()) return;
  const std::vector<std::int32_t>& of_split = groups_of_[static_cast<std::size_t>(parent.split.feature)];
  std::set_intersection(parent.groups.begin(), parent.groups.end(), of_split.begin(), of_split.end(),
                        std::back_inserter(left.groups));
  right.groups = left.groups;
}

void FeatureSampler::sample(const std::uint8_t* from, double share, std::uint64_t key,
                            std::vector<std::uint8_t>& out) const {
  std::vector<std::pair<std::uint64_t, std::size_t>> ranked;
  for (std::size_t f = 0; f < n_features_; ++f)
    if (from == nullptr || from[f] != 0) ranked.emplace_back(mix(key ^ mix(f)), f);
  out.assign(n_features_, 0);  // `from` may have been the same
  if (ranked.empty()) return;
  const auto wanted = static_cast<std::size_t>(std::llround(share * static_cast<double>(ranked.size())));
  const std::size_t count = std::clamp<std::size_t>(wanted, 1, ranked.size());
  std::nth_element(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(count - 1), ranked.end());
  for (std::size_t i = 0; i < count; ++i) out[ranked[i].second] = 1;
}

const std::uint8_t* FeatureSampler::mask(const Node& node, std::vector<std::uint8_t>& buffer) {
  const std::uint8_t* mask = sample_.mask;
  if (sample_.level_share < 1.0) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto level = static_cast<std::size_t>(node.depth);
    while (levels_.size() <= level) {
      levels_.emplace_back();
      sample(sample_.mask, sample_.level_share, mix(sample_.key + 2 * levels_.size()), levels_.back());
    }
    mask = levels_[level].data();
  }
  if (!groups_of_.empty()) {
    std::vector<std::uint8_t> allowed(n_features_, 0);
    for (const std::int32_t group : node.groups) {
      for (std::int64_t i = sample_.groups.begin[group]; i < sample_.groups.begin[group + 1]; ++i) {
        const auto feature = static_cast<std::size_t>(sample_.groups.feature[i]);
        allowed[feature] = mask == nullptr || mask[feature] != 0 ? 1 : 0;
      }
    }
    buffer = std::move(allowed);
    mask = buffer.data();
  }
  if (sample_.node_share < 1.0) {
    sample(mask, sample_.node_share, mix(mix(sample_.key + 1) ^ node.path), buffer);
    mask = buffer.data();
  }
  return mask;
}

}  // namespace polyleaf
