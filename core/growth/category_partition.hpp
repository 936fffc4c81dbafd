// Which categories of a feature go to which side of a split.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace polyleaf {

// Bins of the split's feature. Those that the node has no rows of are on neither side. Of a numeric split, both are
// empty.
struct CategoryPartition {
  std::vector<std::uint32_t> left, right;

  bool empty() const { return left.empty() && right.empty(); }

  // The bins `order[first], ..., order[last - 1]` to the left, the others of them to the right.
  template <class BinOf>
  void set(const std::vector<std::uint32_t>& order, std::size_t first, std::size_t last, BinOf&& bin_of) {
    left.clear();
    right.clear();
    for (std::size_t i = 0; i < order.size(); ++i) (i >= first && i < last ? left : right).push_back(bin_of(order[i]));
    std::sort(left.begin(), left.end());
    std::sort(right.begin(), right.end());
  }
};

// Adds to a set that begins at a word, as trees keep them (rules/routing.hpp).
inline void add_category(std::vector<std::uint32_t>& words, std::size_t begin, std::uint32_t category) {
  const std::size_t word = begin + category / 32;
  if (words.size() <= word) words.resize(word + 1, 0u);
  words[word] |= 1u << (category % 32);
}

}  // namespace polyleaf
