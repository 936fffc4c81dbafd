#include "label_sparse/split_search.hpp"

#include <algorithm>

#include "base/threads.hpp"
#include "rules/acceptance.hpp"

namespace polyleaf {

LabelSplitSearch::OfThread::OfThread(const LabelSplitSearch& search, const SparseLeaves& sparse)
    : features(search.matrix_, search.gradients_, search.rules_, sparse, search.noise_),
      number_of(search.gradients_.factor.size(), -1) {}

LabelSplitSearch::LabelSplitSearch(const GrowTask& task, const GrowSettings& settings, const LabelGradients& gradients,
                                   const std::vector<std::uint32_t>& rows)
    : matrix_(*task.matrix),
      gradients_(gradients),
      rules_(settings.rules),
      sparse_(settings.sparse),
      rows_(rows),
      features_(task.features, matrix_.features.size()),
      noise_(matrix_.has_categories() ? noise_of_root() : CategoryNoise()) {
  threads_.reserve(static_cast<std::size_t>(std::max(1, settings.n_threads)));
  for (int thread = 0; thread < std::max(1, settings.n_threads); ++thread) threads_.emplace_back(*this, sparse_);
}

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

// By the additions of its search: of all its gradients, feature by feature.
bool LabelSplitSearch::is_small(const Node& node) const {
  const auto of_rows = static_cast<double>(gradients_.value.size() + gradients_.weight.size());
  const double of_row = of_rows / static_cast<double>(std::max<std::size_t>(gradients_.weight.size(), 1));
  return static_cast<double>(node.n_here()) * static_cast<double>(matrix_.n_in_tiles()) * of_row <
         static_cast<double>(kParallelGathers);
}

void LabelSplitSearch::take(const Node& node, NodeLabels& labels, OfThread& own) const {
  if (may_split(node, rules_))
    labels.list(gradients_, rows_.data(), node, own.number_of);
  else
    labels.sum(gradients_, rows_.data(), node, own.number_of);
}

double LabelSplitSearch::inverse(std::int64_t weight) const {
  return score_term(1.0, static_cast<double>(weight) * gradients_.weight_unit + rules_.reg_lambda);
}

// The k outputs with the largest terms; where fewer have any, the lowest others, of which the leaf says 0.
std::vector<std::int32_t> LabelSplitSearch::choose(const std::vector<double>& of_terms, const LabelTerms& terms) const {
  const auto k = static_cast<std::size_t>(sparse_.k);
  std::vector<std::uint32_t> best;
  for (std::size_t i = 0; i < terms.size(); ++i)
    if (of_terms[i] > 0) best.push_back(static_cast<std::uint32_t>(i));
  if (best.size() > k) {
    std::nth_element(
        best.begin(), best.begin() + static_cast<std::ptrdiff_t>(k), best.end(), [&](std::uint32_t a, std::uint32_t b) {
          return of_terms[a] != of_terms[b] ? of_terms[a] > of_terms[b] : terms.output[a] < terms.output[b];
        });
    best.resize(k);
  }
  std::vector<std::int32_t> chosen;
  for (const std::uint32_t i : best) chosen.push_back(terms.output[i]);
  std::sort(chosen.begin(), chosen.end());
  const std::vector<std::int32_t> active = chosen;
  for (std::int32_t output = 0; chosen.size() < k; ++output)
    if (!std::binary_search(active.begin(), active.end(), output)) chosen.push_back(output);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

void LabelSplitSearch::search_root(Node& root, const Team& team) {
  OfThread& own = threads_[static_cast<std::size_t>(team.member)];
  take(root, own.left, own);
  own.terms.clear();
  for (std::size_t i = 0; i < own.left.size(); ++i)
    own.terms.add(own.left.output(i), own.left.totals()[i], own.left.totals()[i]);
  own.terms.compute(gradients_, inverse(own.left.weight()), inverse(0));
  root.leaf_outputs = choose(own.terms.of_side, own.terms);
  features_.start(root);
  search(root, own.left, team);
}

void LabelSplitSearch::search_children(Node& parent, Node& left, Node& right, const Team& team) {
  OfThread& own = threads_[static_cast<std::size_t>(team.member)];
  team.run(!is_small(parent), 2, [&](std::size_t child, int thread) {
    take(child == 0 ? left : right, child == 0 ? own.left : own.right, threads_[static_cast<std::size_t>(thread)]);
  });
  // The outputs of both, which are those of the parent.
  LabelTerms& terms = own.terms;
  terms.clear();
  for (std::size_t i = 0; i < own.left.size(); ++i) {
    own.number_of[static_cast<std::size_t>(own.left.output(i))] = static_cast<std::int32_t>(i);
    terms.add(own.left.output(i), own.left.totals()[i], own.left.totals()[i]);
  }
  for (std::size_t i = 0; i < own.right.size(); ++i) {
    const std::int32_t number = own.number_of[static_cast<std::size_t>(own.right.output(i))];
    if (number < 0)
      terms.add(own.right.output(i), 0, own.right.totals()[i]);
    else
      terms.totals[static_cast<std::size_t>(number)] += own.right.totals()[i];
  }
  for (const std::int32_t output : own.left.outputs()) own.number_of[static_cast<std::size_t>(output)] = -1;
  terms.compute(gradients_, inverse(own.left.weight()), inverse(own.right.weight()));
  if (sparse_.restricted) {
    for (std::size_t i = 0; i < terms.size(); ++i) terms.of_side[i] += terms.of_rest[i];
    left.leaf_outputs = right.leaf_outputs = choose(terms.of_side, terms);
  } else {
    left.leaf_outputs = choose(terms.of_side, terms);
    right.leaf_outputs = choose(terms.of_rest, terms);
  }
  features_.inherit(parent, left, right);
  search(left, own.left, team);
  search(right, own.right, team);
}

double LabelSplitSearch::own_score(const Node& node, const NodeLabels& labels, OfThread& own) const {
  for (std::size_t i = 0; i < labels.size(); ++i)
    own.number_of[static_cast<std::size_t>(labels.output(i))] = static_cast<std::int32_t>(i);
  own.terms.clear();
  for (const std::int32_t output : node.leaf_outputs) {
    const std::int32_t number = own.number_of[static_cast<std::size_t>(output)];
    if (number < 0) continue;
    const std::int32_t total = labels.totals()[static_cast<std::size_t>(number)];
    own.terms.add(output, total, total);
  }
  for (const std::int32_t output : labels.outputs()) own.number_of[static_cast<std::size_t>(output)] = -1;
  own.terms.compute(gradients_, inverse(labels.weight()), inverse(0));
  double score = 0.0;
  for (std::size_t i = 0; i < own.terms.size(); ++i) score += own.terms.of_side[i];
  return score;
}

void LabelSplitSearch::search(Node& node, const NodeLabels& labels, const Team& team) {
  if (!may_split(node, rules_)) return;
  OfThread& own = threads_[static_cast<std::size_t>(team.member)];
  const double score = own_score(node, labels, own);
  const std::uint8_t* mask = features_.mask(node, own.mask);
  const std::uint64_t number = ++n_searches_;
  std::vector<LabelSplit> found(matrix_.tiles.size());
  team.run(!is_small(node), matrix_.tiles.size(), [&](std::size_t tile, int thread) {
    OfThread& helper = threads_[static_cast<std::size_t>(thread)];
    // What does not score more than the node itself does not split it.
    if (helper.joined != number) helper.features.start(labels, rows_.data() + node.begin, score);
    helper.joined = number;
    found[tile] = helper.features.best(matrix_.tiles[tile], mask);
  });
  BestCandidate best;
  for (const LabelSplit& of_tile : found) best.merge(of_tile.best);
  accept_split(node, best.chosen, score, node.leaf_outputs.size(), rules_);
  if (node.gain > 0)
    node.partition = std::move(found[matrix_.features[static_cast<std::size_t>(node.split.feature)].tile].partition);
}

}  // namespace polyleaf
