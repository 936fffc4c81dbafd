// The ways to the leaves of a forest, laid out for Shapley values (kernels/explain.hpp).
//
// Of the splits on a way that ask for the same feature, one element is made: a row fulfils it that goes along at all of
// them, and its share is the product of theirs. The share of a child is its cover among that of both children; where
// neither has any, by rows, and where there are none, a half.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "explain/gauss_legendre.hpp"
#include "kernels/explain.hpp"
#include "predict/forest_arrays.hpp"

namespace polyleaf {

class LeafPaths {
 public:
  // The first n_trees trees; `outputs` of them ascend. The arrays of the forest must live as long as this.
  LeafPaths(const ForestArrays& forest, std::size_t n_trees, const std::vector<std::int32_t>& outputs);

  PathForest view() const;
  std::size_t n_trees() const { return trees_.size(); }
  const std::vector<std::int32_t>& features() const { return features_; }  // that splits use, ascending
  const std::vector<double>& expected() const { return expected_; }        // what the trees add up to on average
  // What view() points to, for a device that has its own copy.
  const std::vector<PathTree>& trees() const { return trees_; }
  const std::vector<LeafBatch>& batches() const { return batches_; }
  const std::vector<PathStep>& steps() const { return steps_; }
  const std::vector<PathElement>& elements() const { return elements_; }
  const std::vector<double>& tables() const { return tables_; }
  const std::vector<double>& unfulfilled() const { return unfulfilled_; }
  const std::vector<CategoryWords>& sets() const { return sets_; }
  const std::vector<std::size_t>& value_begin() const { return value_begin_; }
  const std::vector<double>& values() const { return values_; }
  const std::vector<std::uint32_t>& value_output() const { return value_output_; }
  std::size_t scratch_vectors() const { return scratch_vectors_; }
  std::size_t most_slots() const { return most_slots_; }       // of a batch
  std::size_t n_elements() const { return elements_.size(); }  // features on the ways to all leaves

 private:
  struct Node;    // on the way down
  struct Chosen;  // which outputs

  void find_features(const ForestArrays& forest, std::size_t n_trees);
  void add_tree(const ForestArrays& forest, std::size_t tree, const Chosen& chosen);
  void add_step(const ForestArrays& forest, const std::vector<Node>& way, const Quadrature& rule);
  void add_leaf(std::size_t node, const std::vector<Node>& way);
  void close_batch(const ForestArrays& forest, std::size_t tree, const Chosen& chosen);
  void add_values(const ForestArrays& forest, std::size_t tree, const Chosen& chosen);
  void use_points(std::size_t n);

  std::vector<std::int32_t> features_;
  std::vector<double> expected_;
  std::vector<PathTree> trees_;
  std::vector<LeafBatch> batches_;
  std::vector<PathStep> steps_;
  std::vector<PathElement> elements_;
  std::vector<FeatureRun> runs_;
  std::vector<std::uint32_t> leaf_of_slot_;
  std::vector<std::uint32_t> column_of_slot_;
  std::vector<double> tables_;
  std::vector<double> unfulfilled_;
  std::vector<double> of_pair_;
  std::vector<Quadrature> rules_;  // by number of points, from 1 on
  std::vector<CategoryWords> sets_;
  std::vector<std::size_t> value_begin_;
  std::vector<double> values_;
  std::vector<std::uint32_t> value_output_;
  bool sparse_ = false;
  std::size_t scratch_vectors_ = 0;
  std::size_t most_slots_ = 0;

  // Of the batch that is being laid out.
  struct OpenLeaf {
    std::size_t node;
    double share;  // of the training rows
  };
  std::vector<OpenLeaf> open_leaves_;
  std::vector<std::uint32_t> open_columns_;  // per element
  std::size_t n_leaves_ = 0;                 // before the batch
};

}  // namespace polyleaf
