// A tree as arrays over its nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "growth/replay.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

// Nodes stand in the order best-first growth creates them: the children of a node come after it, side by side, the left
// one first.
struct GrownTree {
  std::vector<std::int32_t> feature;  // -1: leaf
  std::vector<std::int32_t> bin;
  std::vector<double> threshold;
  std::vector<std::uint8_t> missing_left;
  // Of a split by categories: the set of those that go where missing values do not, words category_begin[node] to
  // category_begin[node + 1] of category_bits. All others, unseen ones among them, go with missing values. Of a numeric
  // split and of a leaf: no words.
  std::vector<std::int64_t> category_begin;
  std::vector<std::uint32_t> category_bits;
  std::vector<std::int32_t> left;  // the right child is the next; a leaf has -1
  std::vector<double> gain;
  std::vector<double> cover;               // sum of weights
  std::vector<std::int64_t> count;         // rows
  std::vector<std::int32_t> leaf;          // which row of values; -1 for inner nodes
  std::vector<float> values;               // leaves x outputs (or k of them), learning rate applied
  std::vector<std::int32_t> outputs;       // sparse leaves: which output each value belongs to; else empty
  std::vector<std::int32_t> gain_feature;  // the features of the splits, ascending, where gains are shared out
  std::vector<double> output_gain;         // and what each output gains by each of them
};

// The rows of one leaf, as positions in the array of row numbers.
struct LeafRows {
  std::size_t node;
  std::size_t begin;
  std::size_t end;
};

// Everything but values and covers.
GrownTree lay_out_tree(const BinnedMatrix& matrix, const Order& order);
std::vector<LeafRows> leaf_rows(const Order& order);

// Covers and counts of the inner nodes from those of the leaves.
void sum_up(GrownTree& tree);

// The side of missing values where a split saw none: the heavier child. Then the sets of categories, which hang on it.
void place_unseen(const BinnedMatrix& matrix, const Order& order, GrownTree& tree);

// Tells the rows of the whole table apart by leaf: `rows` then holds all of them, those of a leaf in ascending order.
std::vector<LeafRows> gather_all_rows(const BinnedMatrix& matrix, int n_threads, std::vector<std::uint32_t>& rows,
                                      GrownTree& tree);

// The leaf that a row of the table falls into.
std::size_t find_leaf(const BinnedMatrix& matrix, std::size_t row, const GrownTree& tree);

}  // namespace polyleaf
