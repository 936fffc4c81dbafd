// Shapley values of a tree for a few rows at once.
//
// The way to a leaf asks for some distinct features. A row fulfils what the way asks of a feature (one = 1), or not
// (one = 0); z is the share of the training rows that do, among those that come so far. With a leaf's value v, the
// Shapley value of feature i gets from it
//
//   v (one_i - z_i) * integral over t in [0, 1] of prod_{j != i} (z_j + t (one_j - z_j)),
//
// a polynomial of as many factors as there are other features, which Gauss-Legendre points integrate exactly. The
// factors are multiplied up on the way down, so that leaves share them; what belongs to i is divided out again: that
// is the same number for all features that a row does not fulfil, -1 / (1 - t), and so nothing is divided by 0 where
// no training row went.
#pragma once

#include <cstddef>
#include <cstdint>

namespace polyleaf {

constexpr std::size_t kRowsTogether = 8;    // a row is a lane of a vector
constexpr std::size_t kLeavesTogether = 64;  // whose values and weights fit a core's first cache

struct CategoryWords {
  const std::uint32_t* words;
  std::size_t n_words;
};

// A step down, in depth-first order. Its table holds, for each point, what the product is multiplied by: where the row
// fulfils the feature's splits down to here, where this is the first that it does not, and where an earlier one was;
// then what the feature gets where it fulfils all.
struct PathStep {
  double threshold;
  std::uint32_t column;      // among the features that the forest uses
  std::uint32_t depth;       // of the node it leads to
  std::uint32_t above;       // depth of the step before by the same feature; 0: none
  std::int32_t set;          // of a split by categories; else -1
  std::uint32_t n_elements;  // distinct features on the way, where it leads to a leaf; else 0
  bool right;
  bool missing_right;
};

// A feature on the way to a leaf: depth of the last step by it, and where its weight goes.
struct PathElement {
  std::uint32_t depth;
  std::uint32_t slot;
};

// Slots of a feature in a batch, side by side.
struct FeatureRun {
  std::uint32_t column;
  std::uint32_t begin, end;
};

// Some leaves of a tree, one after the other in depth-first order.
struct LeafBatch {
  std::size_t step_begin, step_end;
  std::size_t element_begin;
  std::size_t run_begin, run_end;
  std::size_t slot_begin;  // of leaf_of_slot, which counts leaves within the batch
  std::size_t first_leaf, n_leaves;
};

struct PathTree {
  std::size_t batch_begin, batch_end;
  std::size_t step_begin;
  std::size_t table_begin;  // of its steps: 4 rows of n_points each
  std::size_t n_points;
  std::size_t n_depths;                 // of the deepest leaf, and the root
  std::size_t first_output, n_outputs;  // among those asked for
};

// Values of leaves lie in pieces of at most so many outputs: piece after piece, leaf after leaf.
constexpr std::size_t kOutputsTogether = 8;

struct PathForest {
  const PathTree* trees = nullptr;
  const LeafBatch* batches = nullptr;
  const PathStep* steps = nullptr;
  const PathElement* elements = nullptr;
  const FeatureRun* runs = nullptr;
  const std::uint32_t* leaf_of_slot = nullptr;
  const double* tables = nullptr;
  const double* unfulfilled = nullptr;  // by number of points: what a feature gets that a row does not fulfil
  const CategoryWords* sets = nullptr;
  const std::size_t* value_begin = nullptr;     // per leaf; dense: of the first leaf of a batch only
  const double* values = nullptr;
  const std::uint32_t* value_output = nullptr;  // sparse leaves: among the outputs asked for; else null
  std::size_t n_outputs = 0;                    // asked for
};

struct ExplainKernels {
  // Adds the Shapley values of one tree to sums (columns x outputs x kRowsTogether).
  // x: columns x kRowsTogether. scratch: n_depths x (2 + 2 n_points) vectors. weights: a vector per slot of a batch.
  void (*add_tree)(const PathForest& forest, const PathTree& tree, const double* x, double* scratch, double* weights,
                   double* sums);
};

// Where the row of `unfulfilled` for this many points begins.
inline std::size_t unfulfilled_begin(std::size_t n_points) { return n_points * (n_points - 1) / 2; }

// Of the instruction set in use (kernels/dispatch.hpp).
const ExplainKernels& explain_kernels();

}  // namespace polyleaf
