// One tree from one round's gradients (Algorithm 5 of the paper).
//
// A node's best split does not depend on when the node is visited, so nodes are visited in the order that needs little
// memory, and the best-first tree is read off afterwards by replaying the priority queue on the gains found. A node
// whose path-minimum gain lies strictly below that of max_leaves - 1 others is never part of that tree and is not
// visited.
#pragma once

#include <cstdint>
#include <vector>

#include "binned_matrix.hpp"
#include "payload.hpp"
#include "rules.hpp"

namespace polyleaf {

struct GrowSettings {
  Rules rules{};
  double learning_rate = 1.0;
  std::size_t histogram_bytes = 0;  // memory for histograms kept for subtraction
  int n_threads = 1;
};

// A tree as arrays over nodes in the order best-first growth creates them: the children of a node come after it, side
// by side, the left one first.
struct GrownTree {
  std::vector<std::int32_t> feature;  // -1: leaf
  std::vector<std::int32_t> bin;
  std::vector<double> threshold;
  std::vector<std::uint8_t> missing_left;
  std::vector<std::int32_t> left;  // the right child is the next; a leaf has -1
  std::vector<double> gain;
  std::vector<double> cover;        // sum of weights
  std::vector<std::int64_t> count;  // rows
  std::vector<std::int32_t> leaf;   // which row of values; -1 for inner nodes
  std::vector<float> values;        // leaves x outputs, learning rate applied
};

struct GrowTask {
  const BinnedMatrix* matrix = nullptr;
  Gradients gradients;
  const double* gain_weight = nullptr;  // per output: its share in the split score, of gradients in units
  const double* unit = nullptr;         // per output: values and gradients are multiples of it
  const std::uint32_t* rows = nullptr;  // the sample to grow from, ascending; null: all rows
  std::size_t n_rows = 0;
  const std::uint8_t* feature_mask = nullptr;
  double* raw = nullptr;  // predictions of all rows, to which the tree is added
  std::size_t raw_stride = 0;
};

// Grows trees on one binned table; keeps its work space from round to round.
class TreeGrower {
 public:
  GrownTree grow(const GrowTask& task, const GrowSettings& settings);

 private:
  Payload payload_;
  Buffer<std::int32_t> histograms_;
  std::vector<std::uint32_t> rows_, spare_;
};

}  // namespace polyleaf
