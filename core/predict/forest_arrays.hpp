// A forest as the Python side keeps it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace polyleaf {

// Flat arrays over the nodes of all trees. Indices of children are relative to the tree.
struct ForestArrays {
  std::size_t n_trees = 0;
  std::size_t n_nodes = 0;
  const std::int64_t* node_begin = nullptr;  // n_trees + 1
  const std::int32_t* feature = nullptr;
  const double* threshold = nullptr;
  const std::int32_t* left = nullptr;
  const std::uint8_t* missing_left = nullptr;
  // As in GrownTree, for the nodes of all trees.
  const std::int64_t* category_begin = nullptr;  // n_nodes + 1
  const std::uint32_t* category_bits = nullptr;
  const std::int64_t* value_begin = nullptr;  // per node: where a leaf's values begin
  const float* values = nullptr;
  const std::int32_t* value_output = nullptr;  // sparse leaves: the output of each value; null: side by side
  const std::int32_t* tree_output = nullptr;   // first output a tree adds to
  const std::int32_t* tree_width = nullptr;    // how many
  // Where predictions are explained; otherwise null.
  const double* cover = nullptr;
  const std::int64_t* count = nullptr;
};

}  // namespace polyleaf
