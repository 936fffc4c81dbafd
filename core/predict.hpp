// Prediction with a forest: rows in blocks, all trees over one block, so that neither leaves the cache.
#pragma once

#include <cstdint>
#include <vector>

#include "matrix_view.hpp"

namespace polyleaf {

// Flat arrays over the nodes of all trees, as the Python side keeps them. Indices of children are relative to the tree.
struct ForestArrays {
  std::size_t n_trees = 0;
  std::size_t n_nodes = 0;
  const std::int64_t* node_begin = nullptr;  // n_trees + 1
  const std::int32_t* feature = nullptr;
  const double* threshold = nullptr;
  const std::int32_t* left = nullptr;
  const std::uint8_t* missing_left = nullptr;
  const std::int64_t* value_begin = nullptr;  // per node: where a leaf's values begin
  const float* values = nullptr;
  const std::int32_t* value_output = nullptr;  // sparse leaves: the output of each value; null: side by side
  const std::int32_t* tree_output = nullptr;   // first output a tree adds to
  const std::int32_t* tree_width = nullptr;    // how many
};

class Predictor {
 public:
  explicit Predictor(const ForestArrays& arrays);

  // Adds trees [begin, end) to raw (rows x n_outputs, in units of each output).
  void add(const MatrixView& x, std::size_t begin, std::size_t end, double* raw, std::size_t n_outputs,
           int n_threads) const;

  // The node index (within its tree) of the leaf each row reaches, rows x (end - begin).
  void apply(const MatrixView& x, std::size_t begin, std::size_t end, std::int32_t* leaves, int n_threads) const;

 private:
  struct PackedNode {
    double threshold;
    std::int32_t feature;  // of a leaf: -1; missing values to the left: bit 30
    std::int32_t left;     // of a leaf: index into leaf_begin_
  };
  template <class Visit>
  void over_blocks(const MatrixView& x, std::size_t n_trees, int n_threads, Visit&& visit) const;

  std::vector<PackedNode> nodes_;
  std::vector<std::size_t> node_begin_;
  std::vector<std::int64_t> leaf_begin_;
  const float* values_;
  const std::int32_t* value_output_;
  std::vector<std::int32_t> tree_output_, tree_width_;
};

}  // namespace polyleaf
