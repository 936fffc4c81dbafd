// A forest of one tree, straight from how it was grown.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "growth/grown_tree.hpp"
#include "predict/forest_arrays.hpp"

namespace polyleaf {

class TreeForest {
 public:
  // The tree must live as long. `width`: values of a leaf; they go to the outputs from `first_output` on.
  TreeForest(const GrownTree& tree, std::size_t width, std::int32_t first_output);
  TreeForest(const TreeForest&) = delete;  // the arrays are its own
  TreeForest& operator=(const TreeForest&) = delete;

  const ForestArrays& arrays() const { return arrays_; }

 private:
  std::array<std::int64_t, 2> node_begin_;
  std::int32_t first_output_;
  std::int32_t width_;
  std::vector<std::int64_t> value_begin_;
  ForestArrays arrays_;
};

}  // namespace polyleaf
