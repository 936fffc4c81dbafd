#include "label_hashed/leaves.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/threads.hpp"
#include "leaves/leaf_values.hpp"
#include "quantize/bounds.hpp"
#include "rules/exact_sum.hpp"
#include "rules/scoring.hpp"

namespace polyleaf {
namespace {

struct Grids {
  SumGrid gradient, weight;
};

// Sums that no order changes; plain ones where weights differ too much for that.
Grids grids_of(const SparseLabels& labels, const LeafMembers& members, int n_threads) {
  const std::size_t n_rows = labels.n_rows();
  if (members.weight != nullptr && span_widely(members.weight, n_rows)) return {{0.0, 0.0}, {0.0, 0.0}};
  constexpr std::size_t kBlockRows = 4096;
  const std::size_t n_blocks = (n_rows + kBlockRows - 1) / kBlockRows;
  std::vector<double> largest(n_blocks, 0.0), heaviest(n_blocks, members.weight == nullptr ? 1.0 : 0.0);
  parallel_for(n_threads, n_blocks, [&](std::size_t block, int) {
    const std::size_t end = std::min(n_rows, (block + 1) * kBlockRows);
    for (std::size_t row = block * kBlockRows; row < end; ++row) {
      if (members.weight != nullptr) heaviest[block] = std::max(heaviest[block], members.weight[row]);
      for (const LabelCell& cell : labels.cells(row))
        largest[block] = std::max(largest[block], std::fabs(static_cast<double>(cell.gradient())));
    }
  });
  const double gradient = *std::max_element(largest.begin(), largest.end());
  const double weight = *std::max_element(heaviest.begin(), heaviest.end());
  const auto count = static_cast<double>(n_rows);
  return {sum_grid(gradient * weight, count), sum_grid(weight, count)};
}

// The rows of each leaf side by side.
struct RowsByLeaf {
  std::vector<std::size_t> begin;
  std::vector<std::uint32_t> row;

  explicit RowsByLeaf(const LeafMembers& members) : begin(members.n_leaves + 1, 0), row(members.n_rows) {
    const auto at = [&](std::size_t i) {
      return members.rows == nullptr ? static_cast<std::uint32_t>(i) : members.rows[i];
    };
    for (std::size_t i = 0; i < members.n_rows; ++i) ++begin[members.leaf_of_row[at(i)] + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    std::vector<std::size_t> next(begin.begin(), begin.end() - 1);
    for (std::size_t i = 0; i < members.n_rows; ++i) row[next[members.leaf_of_row[at(i)]]++] = at(i);
  }
};

struct LeafLabel {
  std::int32_t label;
  double gradient;  // its sum, shrunk
};

// What one thread adds up, leaf by leaf.
class LeafSums {
 public:
  explicit LeafSums(std::size_t n_labels) : sums_(n_labels), seen_(n_labels, 0) {}

  void add(std::int32_t label, double gradient, const SumGrid& grid) {
    const auto at = static_cast<std::size_t>(label);
    if (seen_[at] == 0) {
      seen_[at] = 1;
      touched_.push_back(label);
    }
    sums_[at].add(gradient, grid);
  }

  // The labels with the largest sums, ascending, and an empty leaf again.
  std::vector<LeafLabel> take(const LabelLeafRule& rule) {
    std::vector<LeafLabel> chosen;
    for (const std::int32_t label : touched_) {
      const auto at = static_cast<std::size_t>(label);
      const double shrunk = soft_threshold(sums_[at].value(), rule.reg_alpha);
      if (shrunk != 0) chosen.push_back({label, shrunk});
      sums_[at] = ExactSum{};
      seen_[at] = 0;
    }
    touched_.clear();
    if (chosen.size() > rule.most) {
      const auto larger = [](const LeafLabel& a, const LeafLabel& b) {
        const double size = std::fabs(a.gradient), other = std::fabs(b.gradient);
        return size != other ? size > other : a.label < b.label;
      };
      std::nth_element(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(rule.most), chosen.end(), larger);
      chosen.resize(rule.most);
    }
    std::sort(chosen.begin(), chosen.end(), [](const LeafLabel& a, const LeafLabel& b) { return a.label < b.label; });
    return chosen;
  }

 private:
  std::vector<ExactSum> sums_;
  std::vector<std::uint8_t> seen_;
  std::vector<std::int32_t> touched_;
};

// Labels that a leaf says nothing of, the first ones, until it has `width`.
void pad(std::vector<LeafLabel>& chosen, std::size_t width) {
  const std::size_t n_own = chosen.size();
  std::size_t own = 0;
  for (std::int32_t label = 0; chosen.size() < width; ++label) {
    while (own < n_own && chosen[own].label < label) ++own;
    if (own == n_own || chosen[own].label != label) chosen.push_back({label, 0.0});
  }
  std::inplace_merge(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(n_own), chosen.end(),
                     [](const LeafLabel& a, const LeafLabel& b) { return a.label < b.label; });
}

}  // namespace

LabelLeaves fill_label_leaves(const SparseLabels& labels, const LeafMembers& members, const LabelLeafRule& rule,
                              int n_threads) {
  const Grids grids = grids_of(labels, members, n_threads);
  const RowsByLeaf places(members);
  std::vector<std::vector<LeafLabel>> chosen(members.n_leaves);
  std::vector<double> hessian(members.n_leaves);
  std::vector<LeafSums> sums(static_cast<std::size_t>(std::max(n_threads, 1)), LeafSums(labels.n_outputs()));
  parallel_for(n_threads, members.n_leaves, [&](std::size_t leaf, int thread) {
    LeafSums& own = sums[static_cast<std::size_t>(thread)];
    ExactSum total;
    for (std::size_t i = places.begin[leaf]; i < places.begin[leaf + 1]; ++i) {
      const std::uint32_t row = places.row[i];
      const double weight = members.weight != nullptr ? members.weight[row] : 1.0;
      total.add(weight, grids.weight);
      for (const LabelCell& cell : labels.cells(row)) {
        const auto gradient = static_cast<double>(cell.gradient());
        if (gradient != 0) own.add(cell.output, weight * gradient, grids.gradient);
      }
    }
    hessian[leaf] = total.value();
    chosen[leaf] = own.take(rule);
  });
  LabelLeaves leaves;
  leaves.width = 1;
  for (const std::vector<LeafLabel>& one : chosen) leaves.width = std::max(leaves.width, one.size());
  leaves.values.resize(members.n_leaves * leaves.width);
  leaves.labels.resize(members.n_leaves * leaves.width);
  parallel_for(n_threads, members.n_leaves, [&](std::size_t leaf, int) {
    pad(chosen[leaf], leaves.width);
    for (std::size_t i = 0; i < leaves.width; ++i) {
      const LeafLabel& one = chosen[leaf][i];
      const double value = one.gradient == 0 ? 0.0 : leaf_value(one.gradient, hessian[leaf] + rule.reg_lambda);
      leaves.values[leaf * leaves.width + i] = stored_value(rule.learning_rate * value);
      leaves.labels[leaf * leaves.width + i] = one.label;
    }
  });
  return leaves;
}

}  // namespace polyleaf
