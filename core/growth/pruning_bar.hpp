// The bar of rules/pruning.hpp, raised by every node that can be split.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

#include "rules/pruning.hpp"

namespace polyleaf {

class PruningBar {
 public:
  explicit PruningBar(int max_leaves) : n_best_(static_cast<std::size_t>(std::max(max_leaves - 1, 0))) {}

  // Takes note of a node that can be split, with the score of its best split.
  void raise(double path_minimum, double score) {
    largest_score_ = std::max(largest_score_, score);
    best_minima_.push(path_minimum);
    if (best_minima_.size() > n_best_) best_minima_.pop();
  }

  // Nodes with a path minimum below this are never split.
  double height() const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (n_best_ == 0) return kInfinity;
    return best_minima_.size() < n_best_ ? -kInfinity : pruning_bar(best_minima_.top(), largest_score_);
  }

 private:
  std::size_t n_best_;  // splits that use up the leaves
  std::priority_queue<double, std::vector<double>, std::greater<double>> best_minima_;
  double largest_score_ = 0.0;  // of any split found
};

}  // namespace polyleaf
