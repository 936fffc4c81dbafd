// What the host and the kernels hand each other. gpu/structs.py reads these definitions: a field is a number, a pointer
// or another of the structs, and has a line of its own.
#pragma once

#include "rules/scoring.hpp"
#include "rules/visited_node.hpp"

typedef unsigned char uint8;
typedef unsigned int uint32;
typedef long long int64;
typedef unsigned long long uint64;

namespace polyleaf {

constexpr int kQuad = 4;  // features side by side: codes stand as [quad][row][kQuad]

// What can be wrong with gradients, as bits.
constexpr int kNotFinite = 1;
constexpr int kNegative = 2;

// ---- The training table and its gradients

struct BinnedTable {
  const uint8* codes;        // [quad][row][kQuad]
  const int* value_bins;     // per feature: bins of values
  const uint8* has_missing;  // per feature: whether one of missing values follows
  uint64 n_rows;
  int n_features;
};

struct FloatRows {
  const float* values;  // the outputs of a row side by side; null: there are none
  uint64 stride;        // from row to row
};

struct Gradients {
  FloatRows gradient;
  FloatRows hessian;     // may be none
  const double* weight;  // per row; null: 1
  uint64 n_rows;
  int n_outputs;
};

// Whose magnitudes or squares are summed over the rows, times the weights: those of the gradients, then of the
// Hessians.
struct Columns {
  Gradients terms;
  int squares;
  int rows_per_block;
};

struct Mixtures {       // of outputs, each of its own ones
  const int* begin;     // of each mixture's members, and one more
  const int* output;    // per member
  const double* share;  // per member
  int n_mixtures;
};

// ---- From gradients to integers

struct UnitRules {
  double limit;        // of a sum of integers
  double weight_unit;  // of the integers that stand for weights
  const double* gain_weight;
};

struct Units {
  double* unit;    // of gradients, then of Hessians
  double* scale;   // the same
  double* factor;  // of squares of gradients in these units, in the score; may be null
};

struct Scales {
  const double* gradient;  // per output
  const double* hessian;   // per output
  const double* shared;    // one number: of the weight channel
  double weight;           // of the rows' weights
};

// Channels of a row of the payload.
struct Channels {
  int n_outputs;
  int hessian_channel;  // of the first output; -1: one for all outputs
  int weight_channel;   // of that one, or of the mean over the outputs; the row count where that is enough
  int count_channel;
  int n_channels;  // padded to whole tiles
  int lanes;       // of a tile
};

// ---- A level of nodes

struct RowChunk {  // some rows that one block adds up
  int target;      // position of the node in its level, or number of the leaf
  uint32 begin;    // places in the array of row numbers
  uint32 end;
  int alone;  // no other block has this target
};

struct Level {
  int n_nodes;    // nodes to be searched, by position
  int n_chunks;   // rows whose histograms are built
  int n_pairs;    // siblings of which one is to be subtracted
  int next_node;  // nodes made so far
};

struct LevelNodes {
  VisitedNode* nodes;  // of the whole tree
  int* node_of;        // per position in the level
  int* n_left;         // per position: rows that go left
};

struct LevelRules {
  Rules rules;
  double bar;  // path minimum that a node must reach
  int may_go_on;
  int subtract;  // of two children only the one with fewer rows is built
  uint32 chunk_rows;
};

struct NextLevel {
  Level* level;
  int* node_of;
  int* child;         // per position in the level before: both children's positions; -1: they stay leaves
  int* lefts_before;  // per such position: rows that go left in the nodes before, whose rows stand before its own
  int* pairs;         // positions of parent, built child, other child
  RowChunk* chunks;
};

struct Places {
  int* position;  // per place: of its node in the level; -1: none
  uint32* rows;   // per place: its row
  uint32 n_places;
};

struct Sides {
  uint32* left;      // a bit per place
  int* block_lefts;  // per block of places: how many are set; later, how many in the blocks before
};

// ---- Histograms and splits

// Histograms in memory, [node][quad][feature of the quad][bin][channel]: of some nodes of the level, and of some
// quads.
struct HistogramSlice {
  int* histograms;
  const int* quads;
  int n_quads;
  int first_node;
  int n_nodes;
  int n_bins;
  int n_channels;
};

// What candidates are scored by. Units are those of the integers.
struct Scoring {
  Rules rules;
  Channels channels;
  const double* factor;        // per output: of squared integers
  const double* hessian_unit;  // per output
  const double* alpha;         // per output; null: no L1 regularisation
  const double* weight_unit;   // one number
};

struct Best {    // the best split of a node by one feature
  double score;  // of its children; below 0 or NaN: none
  int feature;
  int bin;
  int n_left;
  int flags;  // as in VisitedNode
};

// ---- Leaves

struct LeafGrids {         // of sums: the coarse one of each output, then the fine ones
  const double* gradient;  // 2 x outputs
  const double* hessian;   // 2 x outputs; may be null
  const double* weight;    // 2
};

struct LeafRules {
  const double* alpha;  // per output; may be null
  double reg_lambda;
  double learning_rate;
  int own_hessian;  // outputs have their own; else the weight is it
};

struct Routes {  // a tree by codes, an entry a node
  const int* left;
  const int* feature;
  const int* bin;
  const uint8* missing_left;
  const int* leaf;
};

// ---- Tables of numbers, and forests

struct Table {
  const void* cells;  // float or double
  int64 row_stride;
  int64 column_stride;
  uint64 n_rows;
  int n_features;
  int staged;  // its rows of a block fit the shared memory, [feature][row]: no two lanes then want the same bank
};

constexpr int kEncodeFeatures = 16;  // that a block finds the codes of

struct Cuts {
  const double* cuts;  // features x most_cuts, padded with infinity
  const int* n_cuts;   // per feature
  int most_cuts;
};

// Inner: `data` is the threshold, or of a split by categories where its words begin and how many there are; `feature`
// has kGoesLeft set where missing values go left and kByCategories of a split by categories; `left` is counted within
// the forest. Leaf: `left` is -1 and `data` says where its values begin.
struct alignas(16) PackedNode {
  double data;
  int feature;
  int left;
};

constexpr int kGoesLeft = 1 << 30;
constexpr int kByCategories = 1 << 29;

// The same in 8 bytes, for float32 tables: `data` is the largest float32 number that goes left, or of a leaf (`next`
// kLeaf) the bits of where its values begin. `next`: 15 bits of the feature, one of missing values, 16 of the left
// child, counted within the tree.
struct alignas(8) SmallNode {
  float data;
  uint32 next;
};

constexpr uint32 kLeaf = 0xffffffffu;

struct Trees {
  const PackedNode* nodes;
  const int64* node_begin;
  const uint32* category_bits;
  int first;
  int n_trees;
};

struct SmallTrees {
  const SmallNode* nodes;
  const int64* node_begin;
  int first;
  int n_trees;
};

struct TreeValues {  // of the leaves of some trees
  const float* values;
  const int* value_output;  // per value, of sparse leaves; else null
  const int* tree_output;   // per tree: its first output
  const int* tree_width;    // per tree: values of a leaf
  int first;
  int n_trees;
};

// ---- Ways to the leaves of a forest, for Shapley values; the core has laid them out (core/kernels/explain.hpp)

struct WayTree {
  int64 batch_begin;
  int64 batch_end;
  int64 step_begin;
  int64 table_begin;  // of its steps: 4 rows of n_points each
  int n_points;
};

struct WayBatch {  // some leaves, one after the other
  int64 step_begin;
  int64 step_end;
  int64 element_begin;  // and of as many slots
};

constexpr int kToTheRight = 1;
constexpr int kMissingRight = 2;

struct WayStep {
  double threshold;
  int64 words_begin;  // of a set of categories
  int n_words;        // 0: by the threshold
  int column;         // among the features that the forest uses
  int depth;          // of the node it leads to
  int above;          // depth of the step before by the same feature; 0: none
  int n_elements;     // distinct features on the way, where it leads to a leaf; else 0
  int sides;          // kToTheRight, kMissingRight
};

struct WayElement {  // a feature on the way to a leaf
  uint32 depth;      // of the last step by it
  uint32 slot;       // of its batch, where its weight goes
};

// Slots of a feature in a batch, side by side, and whose values they are multiplied by.
struct WayRun {
  int64 slot_begin;
  int64 slot_end;
  int64 first_leaf;  // of the batch
  int n_leaves;
  int first_output;  // of the tree, among those asked for
  int n_outputs;
};

constexpr int kOutputsAtOnce = 8;  // whose sums a thread has in registers

struct Ways {
  const WayTree* trees;
  const WayBatch* batches;
  const WayStep* steps;
  const WayElement* elements;
  const WayRun* runs;          // column after column, those of each in the order of its batches
  const uint32* leaf_of_slot;  // within the batch
  const double* tables;        // per step: factors where a row fulfils it, first does not, did not before; what it gets
  const double* unfulfilled;   // by number of points: what a feature gets that a row does not fulfil
  const int64* value_begin;    // per leaf; dense: of the first leaf of a batch only
  const double* values;
  const uint32* value_output;  // per value, of sparse leaves; else null
  const uint32* category_bits;
  int n_columns;         // features that the forest uses
  int n_outputs;         // asked for
  int outputs_together;  // values of leaves lie in pieces of so many outputs: piece after piece, leaf after leaf
};

struct WayGroup {          // trees whose weights are there together
  const int64* first_run;  // per column; behind these, those of the next group
  int64 first_slot;
  int tree_begin;
  int tree_end;
};

// What the threads of all rows write; neighbours are rows.
struct WaySums {
  double* product;  // [depth][point][thread]: of the factors down to here
  uint32* level;    // [depth][thread]: the step there, and what the row does at it
  double* weights;  // [slot of the group][row]
  double* sums;     // [column][output][row]
  uint64 n_rows;
};

struct WayTarget {               // rows x features x outputs
  const int* column_of_feature;  // -1: the forest does not use it
  const int* column_of_output;   // where each output stands in a row
  const double* unit;            // per output
  uint64 n_rows;
  int n_features;
  int n_outputs;
};

}  // namespace polyleaf
