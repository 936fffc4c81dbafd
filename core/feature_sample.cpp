#include "feature_sample.hpp"

#include <algorithm>
#include <cmath>
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

void FeatureSampler::sample(const std::uint8_t* from, double share, std::uint64_t key,
                            std::vector<std::uint8_t>& out) const {
  std::vector<std::pair<std::uint64_t, std::size_t>> ranked;
  for (std::size_t f = 0; f < n_features_; ++f)
    if (from == nullptr || from[f] != 0) ranked.emplace_back(mix(key ^ mix(f)), f);
  const auto wanted = static_cast<std::size_t>(std::llround(share * static_cast<double>(ranked.size())));
  const std::size_t count = std::clamp<std::size_t>(wanted, 1, ranked.size());
  std::nth_element(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(count - 1), ranked.end());
  out.assign(n_features_, 0);
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
  if (sample_.node_share < 1.0) {
    sample(mask, sample_.node_share, mix(mix(sample_.key + 1) ^ node.path), buffer);
    mask = buffer.data();
  }
  return mask;
}

}  // namespace polyleaf
