// The outputs that a node has gradients of, and its rows' gradients by their numbers in it.
//
//   outputs   | 17 | 4 | 230 | ...      those that can have the largest terms first
//   totals    | -9 | 5 |  -4 | ...      sums over the rows
//   potential |  1 | .3 | .2 | ...      what no term of the output can exceed
//
//   cells     | row 0: (17, -1), (230, -1) | row 1: (4, 2) | row 2: none | ...
//
// Most candidates are told from the best by the first few outputs (candidate_scores.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "growth/node.hpp"
#include "label_sparse/gradients.hpp"

namespace polyleaf {

// A gradient of a row of the node.
struct NodeCell {
  std::uint32_t label;  // number of the output in the node
  std::int32_t value;
};

class NodeLabels {
 public:
  // The sums of the rows rows[node.begin], ...; `number_of` has a -1 for each output, before and after.
  void sum(const LabelGradients& gradients, const std::uint32_t* rows, const Node& node,
           std::vector<std::int32_t>& number_of);
  // The same, with the outputs in order and the cells of each row.
  void list(const LabelGradients& gradients, const std::uint32_t* rows, const Node& node,
            std::vector<std::int32_t>& number_of);

  std::size_t size() const { return outputs_.size(); }
  std::int32_t output(std::size_t label) const { return outputs_[label]; }
  const std::vector<std::int32_t>& outputs() const { return outputs_; }
  // With room for whole vectors behind them, as all arrays of labels.
  const std::int32_t* totals() const { return totals_.data(); }
  std::int64_t weight() const { return weight_; }  // in units

  // Of what was listed. Rows are those of the node, from 0 on.
  std::size_t n_rows() const { return row_begin_.size() - 1; }
  std::uint32_t begin(std::size_t row) const { return row_begin_[row]; }
  std::uint32_t end(std::size_t row) const { return row_begin_[row + 1]; }
  const NodeCell& cell(std::uint32_t at) const { return cells_[at]; }
  // Begins to read the cells of a row, of which the first lines of memory count.
  void fetch(std::size_t row) const {
    const auto* first = reinterpret_cast<const char*>(cells_.data() + row_begin_[row]);
    for (int line = 0; line < 3; ++line) __builtin_prefetch(first + 64 * line);
  }
  std::int64_t weight_of(std::size_t row) const { return weights_.empty() ? 1 : weights_[row]; }
  // In float32, relative to scale(): the root of what the square of a gradient counts, a bound on the sum of an
  // output's gradients times it, squared, and how far gradients are shrunk.
  const float* root() const { return root_.data(); }
  const float* potential() const { return potential_.data(); }
  const float* alpha() const { return alpha_.data(); }
  double scale() const { return scale_; }
  // Whether float32 is enough for them.
  bool fit_float() const { return fit_float_; }
  // The outputs in ascending order: the place of each label among them.
  std::vector<std::uint32_t> places() const;

 private:
  // Numbers the outputs as they come, with their sums.
  template <class Visit>
  void number(const LabelGradients& gradients, const std::uint32_t* rows, const Node& node,
              std::vector<std::int32_t>& number_of, Visit&& visit);
  void order(const LabelGradients& gradients);
  void set_floats(const LabelGradients& gradients);

  std::vector<std::int32_t> outputs_, totals_, magnitudes_;
  std::int64_t weight_ = 0;
  std::vector<std::uint32_t> row_begin_;
  Buffer<NodeCell> cells_;
  std::size_t n_cells_ = 0;
  std::vector<std::int32_t> weights_;  // empty: 1
  std::vector<float> root_, potential_, alpha_;
  double scale_ = 1.0;
  bool fit_float_ = false;
  std::vector<std::uint32_t> label_of_;  // per number: its place in order
};

}  // namespace polyleaf
