#include "label_sparse/split_search.hpp"

#include <algorithm>

#include "base/threads.hpp"
#include "kernels/score.hpp"
#include "label_sparse/categories.hpp"
#include "quantize/payload.hpp"
#include "rules/acceptance.hpp"
#include "search/top_k.hpp"

namespace polyleaf {

LabelSplitSearch::LabelSplitSearch(const GrowTask& task, const GrowSettings& settings, const LabelGradients& gradients,
                                   const std::vector<std::uint32_t>& rows)
    : matrix_(*task.matrix),
      gradients_(gradients),
      rules_(settings.rules),
      sparse_(settings.sparse),
      rows_(rows),
      features_(task.features, matrix_.features.size()),
      n_threads_(settings.n_threads),
      noise_(matrix_.has_categories() ? noise_of_root() : CategoryNoise()),
      position_of_(gradients.factor.size(), -1),
      scratch_(static_cast<std::size_t>(std::max(1, n_threads_))) {}

CategoryNoise LabelSplitSearch::noise_of_root() const {
  std::vector<double> squares(gradients_.factor.size(), 0.0);
  double weight = 0.0;
  for (const std::uint32_t row : rows_) {
    const double of_row = gradients_.weight[row] * gradients_.weight_unit;
    weight += of_row;
    for (std::size_t e = gradients_.row_begin[row]; e < gradients_.row_begin[row + 1]; ++e) {
      const double value = gradients_.value[e];  // of the weighted gradient
      if (of_row > 0) squares[static_cast<std::size_t>(gradients_.output[e])] += value * value / of_row;
    }
  }
  for (std::size_t j = 0; j < squares.size(); ++j)
    squares[j] = weight > 0 ? gradients_.factor[j] * squares[j] / weight : 0.0;
  return CategoryNoise(squares);
}

LabelSplitSearch::Compact LabelSplitSearch::compact(const Node& node) {
  Compact out;
  for (std::size_t i = node.begin; i < node.end; ++i) {
    const std::size_t row = rows_[i];
    out.weight += gradients_.weight[row];
    for (std::size_t e = gradients_.row_begin[row]; e < gradients_.row_begin[row + 1]; ++e) {
      std::int32_t& position = position_of_[static_cast<std::size_t>(gradients_.output[e])];
      if (position >= 0) continue;
      position = 0;
      out.outputs.push_back(gradients_.output[e]);
    }
  }
  std::sort(out.outputs.begin(), out.outputs.end());
  for (std::size_t a = 0; a < out.outputs.size(); ++a) {
    const auto output = static_cast<std::size_t>(out.outputs[a]);
    position_of_[output] = static_cast<std::int32_t>(a);
    out.factor.push_back(gradients_.factor[output]);
    out.alpha.push_back(gradients_.alpha[output]);
  }
  // Reads of whole lanes run past the end, where a factor of 0 makes them nothing.
  const std::size_t padded = out.outputs.size() + PayloadLayout::kLane;
  out.factor.resize(padded, 0.0);
  out.alpha.resize(padded, 0.0);
  out.totals.assign(padded, 0);
  out.row_begin.push_back(0);
  for (std::size_t i = node.begin; i < node.end; ++i) {
    const std::size_t row = rows_[i];
    for (std::size_t e = gradients_.row_begin[row]; e < gradients_.row_begin[row + 1]; ++e) {
      out.position.push_back(position_of_[static_cast<std::size_t>(gradients_.output[e])]);
      out.value.push_back(gradients_.value[e]);
      out.totals[static_cast<std::size_t>(out.position.back())] += gradients_.value[e];
    }
    out.row_begin.push_back(out.position.size());
  }
  for (const std::int32_t output : out.outputs) position_of_[static_cast<std::size_t>(output)] = -1;
  return out;
}

double LabelSplitSearch::inverse(std::int64_t weight) const {
  return score_term(1.0, static_cast<double>(weight) * gradients_.weight_unit + rules_.reg_lambda);
}

// Score terms of the active outputs on both sides; returns their sum.
double LabelSplitSearch::compute_terms(const Compact& node, const std::int32_t* left, std::int64_t left_weight,
                                       Scratch& s) const {
  const std::size_t room = node.outputs.size() + PayloadLayout::kLane;
  for (std::vector<double>* terms : {&s.terms.left, &s.terms.right, &s.terms.other})
    if (terms->size() < room) terms->resize(room);
  TermsTile job{};
  job.left = left;
  job.totals = node.totals.data();
  job.terms.n_outputs = static_cast<int>(node.outputs.size());
  job.terms.factor = node.factor.data();
  job.terms.alpha = node.alpha.data();
  job.shared = true;
  job.inverse_left = inverse(left_weight);
  job.inverse_right = inverse(node.weight - left_weight);
  job.left_terms = s.terms.left.data();
  job.right_terms = s.terms.right.data();
  return score_kernels().terms(job);
}

double LabelSplitSearch::score(const Compact& node, const std::int32_t* left, std::int64_t left_weight, double enough,
                               Scratch& s) const {
  const double all = compute_terms(node, left, left_weight, s);
  if (all <= enough) return all;  // k of the terms are no more than all of them
  const std::size_t n = node.outputs.size();
  const auto k = static_cast<std::size_t>(sparse_.k);
  if (!sparse_.restricted)
    return top_sum(s.terms.left, n, k, s.terms.other) + top_sum(s.terms.right, n, k, s.terms.other);
  for (std::size_t j = 0; j < n; ++j) s.terms.left[j] += s.terms.right[j];
  return top_sum(s.terms.left, n, k, s.terms.other);
}

// The k outputs with the largest terms; where fewer have any, the lowest others, of which the leaf says 0.
std::vector<std::int32_t> LabelSplitSearch::choose(const std::vector<double>& terms,
                                                   const std::vector<std::int32_t>& outputs, Scratch& s) const {
  const auto k = static_cast<std::size_t>(sparse_.k);
  std::vector<std::int32_t> chosen;
  each_of_top(terms, outputs.size(), k, s.terms.other, [&](std::size_t position) {
    if (terms[position] > 0) chosen.push_back(outputs[position]);
  });
  const std::vector<std::int32_t> active = chosen;
  for (std::int32_t output = 0; chosen.size() < k; ++output)
    if (!std::binary_search(active.begin(), active.end(), output)) chosen.push_back(output);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

void LabelSplitSearch::search_root(Node& root) {
  const Compact sums = compact(root);
  compute_terms(sums, sums.totals.data(), sums.weight, scratch_[0]);
  root.leaf_outputs = choose(scratch_[0].terms.left, sums.outputs, scratch_[0]);
  features_.start(root);
  search(root, sums);
}

void LabelSplitSearch::search_children(Node& parent, Node& left, Node& right, const Team&) {
  const Compact both = compact(parent);  // its rows are those of the children
  const Compact left_sums = compact(left);
  Scratch& s = scratch_[0];
  s.left.assign(both.totals.size(), 0);
  for (std::size_t a = 0, b = 0; a < left_sums.outputs.size(); ++a) {
    while (both.outputs[b] != left_sums.outputs[a]) ++b;
    s.left[b] = left_sums.totals[a];
  }
  compute_terms(both, s.left.data(), left_sums.weight, s);
  if (sparse_.restricted) {
    for (std::size_t j = 0; j < both.outputs.size(); ++j) s.terms.left[j] += s.terms.right[j];
    left.leaf_outputs = right.leaf_outputs = choose(s.terms.left, both.outputs, s);
  } else {
    left.leaf_outputs = choose(s.terms.left, both.outputs, s);
    right.leaf_outputs = choose(s.terms.right, both.outputs, s);
  }
  features_.inherit(parent, left, right);
  search(left, left_sums);
  search(right, compact(right));
}

void LabelSplitSearch::search(Node& node, const Compact& sums) {
  if (!may_split(node, rules_)) return;
  std::vector<BestCandidate> found(matrix_.features.size());
  std::vector<CategoryPartition> partitions(matrix_.features.size());
  const std::uint8_t* mask = features_.mask(node, node_features_);
  parallel_for(n_threads_, matrix_.features.size(), [&](std::size_t feature, int thread) {
    if (mask != nullptr && mask[feature] == 0) return;
    found[feature] =
        best_of_feature(node, sums, feature, scratch_[static_cast<std::size_t>(thread)], partitions[feature]);
  });
  BestCandidate best;
  for (const BestCandidate& of_feature : found) best.merge(of_feature);
  compute_terms(sums, sums.totals.data(), sums.weight, scratch_[0]);
  double own_score = 0.0;
  for (std::size_t a = 0; a < sums.outputs.size(); ++a)
    if (std::binary_search(node.leaf_outputs.begin(), node.leaf_outputs.end(), sums.outputs[a]))
      own_score += scratch_[0].terms.left[a];
  accept_split(node, best.chosen, own_score, node.leaf_outputs.size(), rules_);
  if (node.gain > 0) node.partition = std::move(partitions[static_cast<std::size_t>(node.split.feature)]);
}

// Orders s.order, the bins of a categorical feature that hold rows of the node.
double LabelSplitSearch::put_bins_in_order(const Node& node, const Compact& sums, Scratch& s) const {
  SparseCategories categories;
  categories.factor = sums.factor.data();
  categories.n_outputs = sums.outputs.size();
  categories.reg_lambda = rules_.reg_lambda;
  std::vector<std::int32_t> touched;
  for (const std::uint32_t bin : s.order) {
    std::int64_t weight = 0;
    touched.clear();
    for (std::uint32_t i = s.bin_begin[bin]; i < s.bin_begin[bin + 1]; ++i) {
      const std::uint32_t at = s.by_bin[i];
      weight += gradients_.weight[rows_[node.begin + at]];
      for (std::size_t e = sums.row_begin[at]; e < sums.row_begin[at + 1]; ++e) {
        touched.push_back(sums.position[e]);
        s.left[static_cast<std::size_t>(sums.position[e])] += sums.value[e];
      }
    }
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    for (const std::int32_t position : touched) {
      categories.output.push_back(position);
      categories.gradient.push_back(s.left[static_cast<std::size_t>(position)]);
      s.left[static_cast<std::size_t>(position)] = 0;
    }
    categories.begin.push_back(categories.output.size());
    categories.hessian.push_back(static_cast<double>(weight) * gradients_.weight_unit);
  }
  std::vector<std::uint32_t> positions;
  put_in_order(categories, positions);
  for (std::uint32_t& position : positions) position = s.order[position];
  s.order.swap(positions);
  return noise_.score(categories.hessian);
}

BestCandidate LabelSplitSearch::best_of_feature(const Node& node, const Compact& sums, std::size_t feature, Scratch& s,
                                                CategoryPartition& partition) const {
  const FeatureBins& bins = matrix_.features[feature];
  const std::size_t n = node.n_here();
  // The node's rows in the order of their bins (counting sort).
  s.bin_begin.assign(bins.n_bins() + 1, 0);
  s.by_bin.resize(n);
  for (std::size_t i = 0; i < n; ++i) ++s.bin_begin[matrix_.code(rows_[node.begin + i], feature) + 1];
  for (std::size_t b = 0; b < bins.n_bins(); ++b) s.bin_begin[b + 1] += s.bin_begin[b];
  std::vector<std::uint32_t> next(s.bin_begin.begin(), s.bin_begin.end() - 1);
  for (std::size_t i = 0; i < n; ++i)
    s.by_bin[next[matrix_.code(rows_[node.begin + i], feature)]++] = static_cast<std::uint32_t>(i);

  const auto add_bin = [&](std::size_t bin, std::vector<std::int32_t>& to) {
    std::int64_t weight = 0;
    for (std::uint32_t i = s.bin_begin[bin]; i < s.bin_begin[bin + 1]; ++i) {
      const std::uint32_t at = s.by_bin[i];
      weight += gradients_.weight[rows_[node.begin + at]];
      for (std::size_t e = sums.row_begin[at]; e < sums.row_begin[at + 1]; ++e)
        to[static_cast<std::size_t>(sums.position[e])] += sums.value[e];
    }
    return weight;
  };
  s.left.assign(sums.totals.size(), 0);
  s.missing.assign(sums.totals.size(), 0);
  s.with_missing.assign(sums.totals.size(), 0);
  const std::size_t value_bins = bins.n_value_bins;
  const std::size_t n_missing = bins.has_missing ? n - s.bin_begin[value_bins] : 0;
  const std::int64_t missing_weight = n_missing > 0 ? add_bin(value_bins, s.missing) : 0;

  const auto of_weight = [&](std::int64_t weight) { return static_cast<double>(weight) * gradients_.weight_unit; };
  s.order.clear();
  for (std::uint32_t bin = 0; bin < value_bins; ++bin)
    if (s.bin_begin[bin] < s.bin_begin[bin + 1]) s.order.push_back(bin);
  const bool one_against_rest = bins.categorical && value_bins <= kMostOneAgainstRest;
  double by_chance = bins.categorical ? put_bins_in_order(node, sums, s) : 0.0;
  if (one_against_rest) by_chance = 0.0;
  BestCandidate best;
  std::int64_t left_weight = 0;
  std::size_t n_values = 0;  // rows to the left, without missing ones
  // Of few categories, the last place is that of "missing against the rest".
  const std::size_t n_places = s.order.size() + (one_against_rest && s.order.size() > 1 && n_missing > 0 ? 1 : 0);
  for (std::size_t place = 0; place < n_places; ++place) {
    const bool all = place == s.order.size();
    if (one_against_rest) {
      std::fill(s.left.begin(), s.left.end(), 0);
      left_weight = 0;
      n_values = 0;
    }
    for (std::size_t i = all ? 0 : place; i < (all ? place : place + 1); ++i) {
      left_weight += add_bin(s.order[i], s.left);
      n_values += s.bin_begin[s.order[i] + 1] - s.bin_begin[s.order[i]];
    }
    const double less = place + 1 < s.order.size() ? by_chance : 0.0;  // not of missing against the rest
    for (const bool missing_left : {false, true}) {
      if (missing_left && n_missing == 0) continue;
      const std::size_t n_left = n_values + (missing_left ? n_missing : 0);
      const std::int64_t weight = left_weight + (missing_left ? missing_weight : 0);
      if (!large_enough(static_cast<std::int64_t>(n_left), static_cast<std::int64_t>(n), rules_.min_samples_leaf) ||
          !heavy_enough(of_weight(weight), of_weight(sums.weight), rules_.min_child_weight))
        continue;
      const std::int32_t* left = s.left.data();
      if (missing_left) {
        for (std::size_t a = 0; a < sums.outputs.size(); ++a) s.with_missing[a] = s.left[a] + s.missing[a];
        left = s.with_missing.data();
      }
      Candidate candidate;
      candidate.score = score(sums, left, weight, best.highest + less, s) - less;
      if (candidate.score < 0) continue;
      candidate.feature = static_cast<int>(feature);
      candidate.bin = bins.categorical ? static_cast<int>(place) : static_cast<int>(s.order[place]);
      candidate.missing_left = missing_left;
      candidate.missing_seen = n_missing > 0;
      best.offer(candidate);
    }
  }
  if (bins.categorical && best.chosen.feature >= 0) {
    const auto place = static_cast<std::size_t>(best.chosen.bin);
    partition.set(s.order, one_against_rest && place < s.order.size() ? place : 0, place + 1,
                  [](std::uint32_t bin) { return bin; });
  }
  return best;
}

}  // namespace polyleaf
