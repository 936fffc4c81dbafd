#include "label_sparse/node_labels.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "kernels/label_bound.hpp"

namespace polyleaf {
namespace {

// Smaller roots, relative to the largest sum, are taken for this: float32 has no digits left for them.
constexpr double kSmallestRoot = 1e-37;

}  // namespace

template <class Visit>
void NodeLabels::number(const LabelGradients& gradients, const std::uint32_t* rows, const Node& node,
                        std::vector<std::int32_t>& number_of, Visit&& visit) {
  outputs_.clear();
  totals_.clear();
  magnitudes_.clear();
  weight_ = 0;
  for (std::size_t i = node.begin; i < node.end; ++i) {
    const std::size_t row = rows[i];
    weight_ += gradients.weight[row];
    for (std::size_t e = gradients.row_begin[row]; e < gradients.row_begin[row + 1]; ++e) {
      std::int32_t& number = number_of[static_cast<std::size_t>(gradients.output[e])];
      if (number < 0) {
        number = static_cast<std::int32_t>(outputs_.size());
        outputs_.push_back(gradients.output[e]);
        totals_.push_back(0);
        magnitudes_.push_back(0);
      }
      const auto at = static_cast<std::size_t>(number);
      totals_[at] += gradients.value[e];
      magnitudes_[at] += std::abs(gradients.value[e]);  // all together less than 2^31 (rules/grid.hpp)
      visit(static_cast<std::uint32_t>(number), gradients.value[e]);
    }
    visit.end_row(gradients.weight[row]);
  }
  for (const std::int32_t output : outputs_) number_of[static_cast<std::size_t>(output)] = -1;
}

void NodeLabels::sum(const LabelGradients& gradients, const std::uint32_t* rows, const Node& node,
                     std::vector<std::int32_t>& number_of) {
  struct Nothing {
    void operator()(std::uint32_t, std::int32_t) {}
    void end_row(std::int32_t) {}
  };
  number(gradients, rows, node, number_of, Nothing());
}

void NodeLabels::list(const LabelGradients& gradients, const std::uint32_t* rows, const Node& node,
                      std::vector<std::int32_t>& number_of) {
  struct Cells {
    NodeLabels& labels;
    void operator()(std::uint32_t number, std::int32_t value) { labels.cells_[labels.n_cells_++] = {number, value}; }
    void end_row(std::int32_t weight) {
      labels.row_begin_.push_back(static_cast<std::uint32_t>(labels.n_cells_));
      labels.weights_.push_back(weight);
    }
  };
  std::size_t most = 0;
  for (std::size_t i = node.begin; i < node.end; ++i)
    most += gradients.row_begin[rows[i] + 1] - gradients.row_begin[rows[i]];
  if (most > std::numeric_limits<std::uint32_t>::max())
    throw std::length_error("more than 2^32 - 1 gradients of sparse labels are not 0");
  cells_.grow(most);
  n_cells_ = 0;
  weights_.clear();
  row_begin_.assign(1, 0);
  number(gradients, rows, node, number_of, Cells{*this});
  if (!gradients.weighted) weights_.clear();
  order(gradients);
  for (std::size_t at = 0; at < n_cells_; ++at) cells_[at].label = label_of_[cells_[at].label];
  set_floats(gradients);
}

// By the largest terms that the outputs can have: all of an output's gradients on one side, of one sign.
void NodeLabels::order(const LabelGradients& gradients) {
  const std::size_t n = outputs_.size();
  std::vector<std::pair<double, std::uint32_t>> sorted(n);
  for (std::size_t i = 0; i < n; ++i)
    sorted[i] = {-magnitudes_[i] * gradients.unit[static_cast<std::size_t>(outputs_[i])],
                 static_cast<std::uint32_t>(i)};
  std::sort(sorted.begin(), sorted.end());
  label_of_.resize(n);
  std::vector<std::int32_t> outputs(n), totals(n + kLabelLane, 0), magnitudes(n);
  for (std::size_t label = 0; label < n; ++label) {
    const std::uint32_t number = sorted[label].second;
    label_of_[number] = static_cast<std::uint32_t>(label);
    outputs[label] = outputs_[number];
    totals[label] = totals_[number];
    magnitudes[label] = magnitudes_[number];
  }
  outputs_.swap(outputs);
  totals_.swap(totals);
  magnitudes_.swap(magnitudes);
}

void NodeLabels::set_floats(const LabelGradients& gradients) {
  const std::size_t n = outputs_.size();
  root_.assign(n + kLabelLane, 0.0f);
  potential_.assign(n + kLabelLane, 0.0f);
  alpha_.assign(gradients.has_alpha ? n + kLabelLane : 0, 0.0f);
  const auto unit = [&](std::size_t label) { return gradients.unit[static_cast<std::size_t>(outputs_[label])]; };
  const double largest = n > 0 ? magnitudes_[0] * unit(0) : 0.0;
  fit_float_ = largest > 1e-100 && largest < 1e100;
  if (!fit_float_) return;
  scale_ = largest * largest;
  for (std::size_t label = 0; label < n; ++label) {
    const double root = std::max(unit(label) / largest, kSmallestRoot);
    root_[label] = static_cast<float>(root);
    const double bound = magnitudes_[label] * root * (1 + 1e-6);
    potential_[label] = static_cast<float>(bound * bound);
    if (gradients.has_alpha)
      alpha_[label] = static_cast<float>(gradients.alpha[static_cast<std::size_t>(outputs_[label])]);
  }
}

std::vector<std::uint32_t> NodeLabels::places() const {
  std::vector<std::uint32_t> labels(size()), places(size());
  std::iota(labels.begin(), labels.end(), 0u);
  std::sort(labels.begin(), labels.end(), [&](std::uint32_t a, std::uint32_t b) { return outputs_[a] < outputs_[b]; });
  for (std::size_t place = 0; place < labels.size(); ++place) places[labels[place]] = static_cast<std::uint32_t>(place);
  return places;
}

}  // namespace polyleaf
