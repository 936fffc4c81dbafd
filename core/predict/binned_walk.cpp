#include "predict/binned_walk.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/threads.hpp"
#include "kernels/predict.hpp"
#include "rules/routing.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kWalkRows = 1024;
constexpr std::size_t kStepsOfATree = 16;  // about what a row costs in one

struct BinnedNode {
  const FeatureTile* tile = nullptr;
  std::uint32_t position = 0;
  CodeSplit split = {0, 0};
  const std::uint8_t* goes_left = nullptr;  // of a split by categories: for each code
  std::int32_t left = 0;                    // within its tree; the right child is its neighbour. Of a leaf: 0
};

// The nodes of some trees, by codes.
class BinnedNodes {
 public:
  BinnedNodes(const ForestArrays& forest, const BinnedMatrix& matrix, std::size_t begin, std::size_t end)
      : first_(static_cast<std::size_t>(forest.node_begin[begin])) {
    const auto last = static_cast<std::size_t>(forest.node_begin[end]);
    nodes_.resize(last - first_);
    for (std::size_t i = first_; i < last; ++i)
      if (forest.left[i] >= 0) nodes_[i - first_] = node_of(forest, matrix, i);
  }

  const BinnedNode* tree(const ForestArrays& forest, std::size_t tree) const {
    return nodes_.data() + (static_cast<std::size_t>(forest.node_begin[tree]) - first_);
  }

 private:
  BinnedNode node_of(const ForestArrays& forest, const BinnedMatrix& matrix, std::size_t i) {
    const auto feature = static_cast<std::size_t>(forest.feature[i]);
    const std::string name = "feature " + std::to_string(forest.feature[i]);
    if (forest.feature[i] < 0 || feature >= matrix.features.size())
      throw std::invalid_argument("a split is by " + name + ", which the table does not have");
    const FeatureBins& bins = matrix.features[feature];
    if (bins.tile == kNoTile)
      throw std::invalid_argument("a split is by " + name + ", of which the table has no codes");
    const std::size_t n_words = static_cast<std::size_t>(forest.category_begin[i + 1] - forest.category_begin[i]);
    if ((n_words > 0) != bins.categorical)
      throw std::invalid_argument(name + " is categorical " +
                                  (n_words > 0 ? "in the trees, but not in the table" : "in the table alone"));
    BinnedNode node;
    node.tile = &matrix.tiles[bins.tile];
    node.position = bins.position;
    node.left = forest.left[i];
    const bool missing_left = forest.missing_left[i] != 0;
    if (n_words > 0)
      node.goes_left = ways_of_categories(forest.category_bits + forest.category_begin[i], n_words, bins, missing_left);
    else
      node.split = split_by_code(bin_of(bins, forest.threshold[i], name), missing_left, bins.missing_code());
    return node;
  }

  // The last bin to the left of a threshold; one that is infinite parts all values from those that are missing.
  static int bin_of(const FeatureBins& bins, double threshold, const std::string& name) {
    if (threshold == HUGE_VAL) return static_cast<int>(bins.cuts.size());
    const auto cut = std::lower_bound(bins.cuts.begin(), bins.cuts.end(), threshold);
    if (cut == bins.cuts.end() || *cut != threshold)
      throw std::invalid_argument("a threshold of the trees on " + name +
                                  " is no cut point of the table: the side of a row does not follow from its bin");
    return static_cast<int>(cut - bins.cuts.begin());
  }

  const std::uint8_t* ways_of_categories(const std::uint32_t* words, std::size_t n_words, const FeatureBins& bins,
                                         bool missing_left) {
    std::vector<std::uint8_t> ways(bins.n_value_bins + 1, missing_left ? 1 : 0);
    for (std::size_t code = 0; code < bins.categories.size(); ++code)
      ways[code] = category_goes_left(has_category(words, n_words, bins.categories[code]), missing_left) ? 1 : 0;
    ways_.push_back(std::move(ways));
    return ways_.back().data();
  }

  std::size_t first_;
  std::vector<BinnedNode> nodes_;
  std::vector<std::vector<std::uint8_t>> ways_;  // their memory stays where it is when the outer one grows
};

std::size_t leaf_of(const BinnedNode* tree, std::size_t row) {
  std::size_t at = 0;
  while (tree[at].left != 0) {
    const BinnedNode& node = tree[at];
    const std::uint32_t code = node.tile->code(row, node.position);
    const bool left = node.goes_left != nullptr ? node.goes_left[code] != 0 : goes_left(node.split, code);
    at = static_cast<std::size_t>(node.left) + (left ? 0 : 1);
  }
  return at;
}

// Calls visit(row, tree, leaf) for each row and each tree in [begin, end), in the order of the trees for each row.
template <class Visit>
void each_leaf(const ForestArrays& forest, const BinnedMatrix& matrix, std::size_t begin, std::size_t end,
               int n_threads, Visit&& visit) {
  const BinnedNodes nodes(forest, matrix, begin, end);
  const std::size_t n = matrix.n_rows;
  if (n * (end - begin) * kStepsOfATree < kParallelWork) n_threads = 1;
  parallel_for(n_threads, (n + kWalkRows - 1) / kWalkRows, [&](std::size_t block, int) {
    const std::size_t last = std::min(n, (block + 1) * kWalkRows);
    for (std::size_t t = begin; t < end; ++t) {
      const BinnedNode* tree = nodes.tree(forest, t);
      for (std::size_t row = block * kWalkRows; row < last; ++row) visit(row, t, leaf_of(tree, row));
    }
  });
}

}  // namespace

void add_binned(const ForestArrays& forest, const BinnedMatrix& matrix, std::size_t begin, std::size_t end, double* raw,
                std::size_t n_outputs, int n_threads) {
  const PredictKernels& k = predict_kernels();
  each_leaf(forest, matrix, begin, end, n_threads, [&](std::size_t row, std::size_t tree, std::size_t leaf) {
    double* out = raw + row * n_outputs + forest.tree_output[tree];
    const auto width = static_cast<std::size_t>(forest.tree_width[tree]);
    const std::int64_t first = forest.value_begin[static_cast<std::size_t>(forest.node_begin[tree]) + leaf];
    const float* value = forest.values + first;
    if (forest.value_output == nullptr) {
      k.add_values(value, width, out);
    } else {
      const std::int32_t* output = forest.value_output + first;
      for (std::size_t j = 0; j < width; ++j) out[output[j]] += static_cast<double>(value[j]);
    }
  });
}

void apply_binned(const ForestArrays& forest, const BinnedMatrix& matrix, std::size_t begin, std::size_t end,
                  std::int32_t* leaves, int n_threads) {
  const std::size_t n_trees = end - begin;
  each_leaf(forest, matrix, begin, end, n_threads, [&](std::size_t row, std::size_t tree, std::size_t leaf) {
    leaves[row * n_trees + (tree - begin)] = static_cast<std::int32_t>(leaf);
  });
}

}  // namespace polyleaf
