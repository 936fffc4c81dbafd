// A forest whose splits compare small codes instead of numbers: the fast way when many trees see many rows.
//
// The cuts of a feature are the distinct thresholds its splits use; a row's codes are found once and serve all trees.
// Which way a value goes is the same by either comparison, so the leaves are the same.
//
// What it buys: half to four fifths of a prediction of many rows (docs/performance.md).
#pragma once

#include <cstdint>
#include <vector>

#include "base/matrix_view.hpp"
#include "kernels/predict.hpp"
#include "predict/forest_arrays.hpp"

namespace polyleaf {

class CodedForest {
 public:
  explicit CodedForest(const ForestArrays& forest);
  CodedForest(const CodedForest&) = delete;  // trees point into the vectors
  CodedForest& operator=(const CodedForest&) = delete;

  // False: the forest has too many cuts in a column, or leaves in a tree; nothing else may then be called.
  bool usable() const { return usable_; }
  // Whether finding the codes of a row pays when it goes through this many trees.
  bool worth_for(std::size_t n_trees) const;

  // Adds trees [begin, end) to raw (rows x n_outputs).
  void add(const MatrixView& x, std::size_t begin, std::size_t end, double* raw, std::size_t n_outputs,
           int n_threads) const;

 private:
  struct Column {
    std::size_t feature;
    std::size_t cut_begin, cut_end;
  };
  struct Layout;  // what is being built

  bool find_columns(const ForestArrays& forest, std::vector<std::uint32_t>& column_of_feature);
  bool pack_tree(const ForestArrays& forest, std::size_t tree, Layout& layout);
  void pack_mask(const ForestArrays& forest, std::size_t tree, Layout& layout);
  void pack_select(const ForestArrays& forest, std::size_t tree, Layout& layout);
  void pack_walk(const ForestArrays& forest, std::size_t tree, Layout& layout);
  std::int32_t code_of(std::uint32_t column, double threshold) const;
  std::uint32_t filled(std::int32_t code) const;

  template <class Value>
  bool encode_block(const MatrixView& x, std::size_t row, std::size_t count, bool missing, char* codes) const;
  template <class Value>
  void add_span(const MatrixView& x, std::size_t row, std::size_t n_rows, std::size_t begin, std::size_t end,
                double* raw, std::size_t n_outputs) const;

  bool usable_ = false;
  bool wide_ = false;
  std::size_t encode_steps_ = 0;  // what coding a row costs
  std::vector<Column> columns_;   // of the features that splits use
  std::vector<double> cuts_;
  std::vector<float> float_cuts_;  // the largest float32 not above each: a float32 compares to it as to the cut
  std::vector<MaskNode> mask_;
  std::vector<SelectNode> select_;
  std::vector<WalkNode> walk_;
  std::vector<std::uint16_t> walk_leaf_;
  std::vector<std::uint32_t> leaf_begin_;
  std::vector<CodedTree> trees_;
  std::vector<std::size_t> tree_bytes_;  // what a tree takes of a cache
};

}  // namespace polyleaf
