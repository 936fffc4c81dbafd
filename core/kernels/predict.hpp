// Walks of rows through a forest.
#pragma once

#include <cstddef>
#include <cstdint>

namespace polyleaf {

constexpr std::size_t kBlockRows = 64;          // rows that go through a tree together
constexpr std::size_t kMostSelectLeaves = 256;  // of a tree whose splits are all evaluated: leaves fit in a byte
constexpr std::size_t kMostNarrowCuts = 255;    // of a column whose codes are bytes
constexpr std::size_t kMostMaskDepth = 8;       // of a tree whose splits become masks: 256 places for leaves

// A block of kBlockRows rows as codes, column by column. A code is the number of the column's cuts below the value,
// less `2^(bits - 1)` so that signed numbers compare, and "value <= cut i" is "code <= i". Missing values have the
// least code. A block that has any holds each column twice: in the second copy they have the largest code.
struct CodedBlock {
  const void* codes;
  bool wide;     // codes of 16 instead of 8 bits
  bool missing;  // two copies of each column
};

// A split whose result is a vector of leaves, one for each row of the block: of the left or the right child.
struct SelectNode {
  std::uint32_t column;            // where its codes begin, in rows
  std::uint32_t right_if_missing;  // kBlockRows: reads the second copy; 0: the first
  std::uint32_t cut;               // as a code; filled up to 32 bits with copies
  std::uint16_t left, right;  // slots: numbers below kMostSelectLeaves are leaves, then come the nodes in their order
};

// A split whose result is a mask: one bit for each row of the block, set where it goes right.
struct MaskNode {
  std::uint32_t column;
  std::uint32_t right_if_missing;
  std::uint32_t cut;
  std::uint32_t place;  // in a tree where every level is full: the root's is 1, the children's of i are 2 i and 2 i + 1
};

// A split of a tree that is walked row by row. Leaves lead to themselves.
struct WalkNode {
  std::uint32_t column;
  std::uint32_t right_if_missing;
  std::int32_t cut;   // as a code
  std::int32_t left;  // how many nodes further on; the right child is its neighbour. Of a leaf: 0
};

// A tree over codes.
struct CodedTree {
  // Either the splits become masks, from which the ways of all rows are found, bit by bit. The number of a leaf is the
  // way to it, whatever comes after a leaf that is reached earlier.
  const MaskNode* mask;
  std::uint32_t n_mask;
  std::uint32_t depth;
  // Or all splits are evaluated for all rows, children before parents. Both children of the first n_pairs nodes
  // are leaves: 0 and 1, 2 and 3, ...
  const SelectNode* select;
  std::uint32_t n_pairs;
  std::uint32_t n_select;
  // Or each row walks from the root.
  const WalkNode* walk;
  const std::uint16_t* walk_leaf;  // per node: its leaf
  const float* values;
  const std::int32_t* value_output;  // null: side by side
  const std::uint32_t* leaf_begin;   // per leaf: where its values begin
  std::uint32_t output;              // the first the tree adds to
  std::uint32_t width;
};

// Leaves of a block's rows in some trees, and the scores they are added to.
struct LeafBlock {
  const CodedTree* trees;
  std::size_t n_trees;
  const std::uint16_t* leaves;  // trees x kBlockRows
  std::size_t n_rows;
  double* scores;
  std::size_t stride;
};

struct PredictKernels {
  std::size_t vector_bytes;
  bool has_masks;  // whether trees may have that form
  // Codes of kBlockRows values of one column; says whether one of them is missing. `second` may be null.
  bool (*encode_float)(const float* values, const float* cuts, std::size_t n_cuts, bool wide, void* codes,
                       void* second);
  bool (*encode_double)(const double* values, const double* cuts, std::size_t n_cuts, bool wide, void* codes,
                        void* second);
  // `slots` is work space of slot_bytes(wide), which prepare_slots makes ready.
  void (*find_leaves)(const CodedTree& tree, const CodedBlock& block, void* slots, std::uint16_t* leaves);
  void (*prepare_slots)(bool wide, void* slots);
  // Tree after tree, so that the sums do not depend on how trees are taken together.
  void (*add_leaves)(const LeafBlock& block);
  bool (*any_infinite_float)(const float* values, std::size_t n);
  bool (*any_infinite_double)(const double* values, std::size_t n);
  void (*add_values)(const float* values, std::size_t n, double* scores);
};

// Of the results of a tree's splits; masks come last.
constexpr std::size_t slot_bytes(bool wide) {
  return 2 * kMostSelectLeaves * kBlockRows * (wide ? 2 : 1) +
         (std::size_t{1} << kMostMaskDepth) * sizeof(std::uint64_t);
}

const PredictKernels& predict_kernels();

}  // namespace polyleaf
