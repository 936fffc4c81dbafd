// Prediction with a forest. Many trees over many rows go by codes (coded_forest.hpp); a few of either by the
// thresholds themselves. The leaves, and so the sums, are the same.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/matrix_view.hpp"
#include "predict/coded_forest.hpp"
#include "predict/forest_arrays.hpp"

namespace polyleaf {

class Predictor {
 public:
  // The arrays must live as long as the predictor.
  explicit Predictor(const ForestArrays& arrays);

  // Adds trees [begin, end) to raw (rows x n_outputs, in units of each output).
  void add(const MatrixView& x, std::size_t begin, std::size_t end, double* raw, std::size_t n_outputs,
           int n_threads) const;

  // The node index (within its tree) of the leaf each row reaches, rows x (end - begin).
  void apply(const MatrixView& x, std::size_t begin, std::size_t end, std::int32_t* leaves, int n_threads) const;

 private:
  struct PackedNode {
    double threshold;
    std::int32_t feature;  // missing values to the right: bit 30; a split by categories: bit 29
    std::int32_t left;     // how many nodes further on; the right child is its neighbour. Of a leaf: 0
  };
  struct CategorySet {
    const std::uint32_t* words;
    std::size_t n_words;
  };
  template <class Visit>
  void each_leaf(const MatrixView& x, std::size_t begin, std::size_t end, int n_threads, Visit&& visit) const;
  // Null where codes would not pay, or not yet: making them costs as much as walking many rows through the trees.
  const CodedForest* coded(std::size_t n_rows, std::size_t n_trees) const;

  ForestArrays arrays_;
  std::vector<PackedNode> nodes_;
  std::vector<CategorySet> sets_;  // of the splits by categories, whose threshold is the number of their set
  mutable std::atomic<std::size_t> walked_{0};  // trees that rows have asked for
  mutable std::once_flag coding_;
  mutable std::unique_ptr<CodedForest> coded_;
};

}  // namespace polyleaf
