#include "search/candidates.hpp"

#include <algorithm>

#include "rules/acceptance.hpp"

namespace polyleaf {
namespace {

constexpr float kLeastShare = 1e-6f;

}  // namespace

const std::int32_t* missing_bin(const FeatureTile& tile, std::size_t position, const std::int32_t* histogram,
                                int width) {
  if (!tile.has_missing(position)) return nullptr;
  return histogram + tile.value_end[position] * static_cast<std::size_t>(width);
}

void Candidates::clear(const SearchedNode& node, const FeatureTile& tile) {
  node_ = node;
  n_ = terms_.count(node.totals);
  total_ = node.totals[terms_.layout().weight_channel()] * terms_.payload.hessian_unit[0];
  of_whole_ = 1.0f / static_cast<float>(std::max(node.totals[terms_.layout().weight_channel()], 1));
  n_steps_ = 0;
  step_begin_.assign(1, 0);
  missing_seen_.assign(tile.n_features(), 0);
}

// For so many steps of the next feature.
void Candidates::make_room(std::size_t n_steps) {
  const std::size_t size = n_steps_ + n_steps;
  if (steps_.size() >= size) return;
  steps_.resize(2 * size);
  if (with_shares_) left_share_.resize(4 * size);
  if (!weighed_) return;
  inverse_left_.resize(4 * size);
  inverse_right_.resize(4 * size);
}

void Candidates::add(std::uint32_t slot, std::uint32_t rows_end, const Counts& left, const Counts& missing) {
  const std::int64_t least = terms_.rules.min_samples_leaf;
  const std::size_t at = n_steps_++;
  const std::int64_t with_missing = left.count + missing.count;
  Step step{slot, rows_end, large_enough(left.count, n_, least),
            missing.count > 0 && large_enough(with_missing, n_, least)};
  if (weighed_) {
    const double unit = terms_.payload.hessian_unit[0];
    step.right_allowed &= weigh(2 * at, static_cast<double>(left.weight) * unit);
    if (missing.count > 0)
      step.left_allowed &= weigh(2 * at + 1, static_cast<double>(left.weight + missing.weight) * unit);
  }
  if (with_shares_) {
    left_share_[2 * at] = share(left.weight);
    left_share_[2 * at + 1] = share(left.weight + missing.weight);
  }
  steps_[at] = step;
}

float Candidates::share(std::int64_t left_weight) const {
  return std::clamp(static_cast<float>(left_weight) * of_whole_, kLeastShare, 1.0f - kLeastShare);
}

// Whether both sides weigh enough, of a Hessian that all outputs share.
bool Candidates::weigh(std::size_t at, double left_weight) {
  const Rules& rules = terms_.rules;
  const double right_weight = total_ - left_weight;
  inverse_left_[at] = score_term(1.0, left_weight + rules.reg_lambda);
  inverse_right_[at] = score_term(1.0, right_weight + rules.reg_lambda);
  return heavy_enough(left_weight, total_, rules.min_child_weight);
}

void Candidates::list_bins(const FeatureTile& tile, const std::int32_t* histogram) {
  const std::size_t position = step_begin_.size() - 1;
  const PayloadLayout& layout = terms_.layout();
  const auto width = static_cast<std::size_t>(layout.width);
  const auto counts = [&](const std::int32_t* bin) {
    // The weight channel is the count itself unless weights are given.
    return Counts{bin[layout.count_channel()], bin[layout.weight_channel()]};
  };
  if (node_.allows(tile.features[position])) {
    const std::int32_t* missing_vector = missing_bin(tile, position, histogram, layout.width);
    const Counts missing = missing_vector != nullptr ? counts(missing_vector) : Counts{};
    missing_seen_[position] = missing.count > 0 ? 1 : 0;
    make_room(tile.value_end[position] - tile.slot_begin[position]);
    Counts left;
    for (std::uint32_t slot = tile.slot_begin[position]; slot < tile.value_end[position]; ++slot) {
      const Counts bin = counts(histogram + slot * width);
      if (bin.count == 0) continue;  // the same split as the bin before: the lower one wins
      left.count += bin.count;
      left.weight += bin.weight;
      if (!goes_on(left)) break;
      add(slot, 0, left, missing);
    }
  }
  step_begin_.push_back(n_steps_);
}

void Candidates::list_rows(const FeatureTile& tile, const NodeRows& rows) {
  const std::int64_t least = terms_.rules.min_samples_leaf;
  rows_.start(terms_.layout(), tile, rows, least);
  if (!rows_.has_any_outside(least)) {
    step_begin_.assign(tile.n_features() + 1, 0);
    return;
  }
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    if (node_.allows(tile.features[position]) && rows_.has_outside(position, least)) {
      rows_.sort(position);
      const std::uint32_t n_values = rows_.n_values();
      const Counts missing{rows_.n_rows() - n_values, rows_.weight(n_values, rows_.n_rows())};
      missing_seen_[position] = missing.count > 0 ? 1 : 0;
      make_room(rows_.n_groups());
      weighed_ || with_shares_ ? list_weighed_groups(tile.slot_begin[position], missing)
                               : list_groups(tile.slot_begin[position], missing.count);
    }
    step_begin_.push_back(n_steps_);
  }
}

// Of the feature sorted last.
void Candidates::list_groups(std::uint32_t first_slot, std::int64_t n_missing) {
  const std::int64_t least = terms_.rules.min_samples_leaf, n = n_;
  const std::size_t n_groups = rows_.n_groups();
  Step* steps = steps_.data() + n_steps_;
  std::size_t group = 0;
  for (; group < n_groups; ++group) {
    const std::uint32_t end = rows_.end(group);
    if (n - end < least) break;
    steps[group] = {first_slot + rows_.bin(group), end, end >= least,
                    n_missing > 0 && large_enough(end + n_missing, n, least)};
  }
  n_steps_ += group;
}

void Candidates::list_weighed_groups(std::uint32_t first_slot, const Counts& missing) {
  Counts left;
  for (std::size_t group = 0; group < rows_.n_groups(); ++group) {
    const auto begin = static_cast<std::uint32_t>(left.count);
    left.count = rows_.end(group);
    if (!goes_on(left)) break;
    left.weight += rows_.weight(begin, rows_.end(group));
    add(first_slot + rows_.bin(group), rows_.end(group), left, missing);
  }
}

StepSums Candidates::sums(const FeatureTile& tile, std::size_t position, int output_tile,
                          const std::int32_t* histogram) const {
  if (histogram == nullptr) return rows_.sums(position, output_tile);
  StepSums sums{};
  sums.width = terms_.layout().width;
  sums.histogram = histogram;
  sums.missing = missing_bin(tile, position, histogram, sums.width);
  return sums;
}

}  // namespace polyleaf
