#include "search/sparse_finder.hpp"

#include <algorithm>
#include <limits>

#include "search/top_k.hpp"
#include "search/two_sided.hpp"

namespace polyleaf {

SparseFinder::SparseFinder(const OutputTerms& terms, const EstimateTerms& estimates, const JointScore& joint)
    : terms_(terms),
      estimates_(estimates),
      joint_(joint),
      candidates_(terms, true, !joint.sparse_leaves()->restricted) {
  const auto n_tiles = static_cast<std::size_t>(terms.layout().n_tiles);
  sums_.resize(n_tiles);
  float_terms_.resize(n_tiles);
  room_.resize(top_bound_room(n_tiles));
  for (std::vector<std::int32_t>* sums : {&left_, &missing_, &with_missing_})
    sums->resize(terms.layout().n_channels() + PayloadLayout::kSlack);
  job_.sums = sums_.data();
  job_.terms = float_terms_.data();
  job_.n_tiles = n_tiles;
  job_.k = joint.sparse_leaves()->k;
  job_.restricted = joint.sparse_leaves()->restricted;
  job_.error = 2 * estimates.error();  // of the bound that a candidate reaches, and of its own
  job_.smallest = kSmallestEstimate;
  job_.room = room_.data();
}

void SparseFinder::start(const SearchedNode& node) {
  node_ = node;
  job_.bar = 0.0f;  // what was reached before was of other nodes
  for (int t = 0; t < terms_.layout().n_tiles; ++t)
    float_terms_[static_cast<std::size_t>(t)] = estimates_.tile(node, t);
  begin_thresholds();
}

// The k-th largest term of the node itself, times what the best candidate's was of it in the node before.
void SparseFinder::begin_thresholds() {
  const auto n = static_cast<std::size_t>(terms_.layout().n_outputs);
  if (scratch_.other.size() < n) scratch_.other.resize(n);
  terms_.side_terms(node_.totals, node_.totals, scratch_.left, scratch_.right);
  const double kth = kth_largest(scratch_.left, n, static_cast<std::size_t>(job_.k), scratch_.other);
  for (std::size_t side = 0; side < 2; ++side) {
    if (kth_ > 0) ratio_[side] = std::clamp(job_.best_threshold[side] / kth_, 0.125f, 4.0f);
    job_.best_threshold[side] = ratio_[side] * static_cast<float>(kth / estimates_.scale());
  }
  kth_ = static_cast<float>(kth / estimates_.scale());
}

void SparseFinder::clear(const FeatureTile& tile) {
  candidates_.clear(node_, tile);
  highest_.assign(tile.n_features(), 0.0f);
  if (bound_.size() < 2 * tile.n_slots()) bound_.resize(2 * tile.n_slots());
  // Those of the best so far suit most of the others. One-sided outputs have one bound for all candidates, which needs
  // thresholds that are the same for all.
  by_share_ = !job_.restricted && node_.two_sided == nullptr;
  const bool scaled = !job_.restricted && !by_share_;
  for (std::size_t side = 0; side < 2; ++side) {
    const float share = side == 0 ? job_.best_share : 1.0f - job_.best_share;
    job_.threshold[side] = job_.best_threshold[side];
    threshold_[side] = scaled ? share * job_.best_threshold[side] : job_.best_threshold[side];
  }
  together_ = trial_.worthwhile();
  alone_ = !together_ && job_.n_tiles == 1;
  excess_of_others_ = 0.0f;
}

void SparseFinder::clear_bounds(std::size_t position) {
  std::fill(bound_.begin() + static_cast<std::ptrdiff_t>(2 * candidates_.begin(position)),
            bound_.begin() + static_cast<std::ptrdiff_t>(2 * candidates_.end(position)), 0.0f);
}

// Adds what lies above the thresholds in one tile of outputs.
void SparseFinder::add_excess(const FloatTerms& terms, std::size_t position, const StepSums& sums) {
  if (candidates_.has_none(position)) return;
  ExcessTile job = excess_of(candidates_, position, terms, sums, bound_.data());
  job.restricted = job_.restricted;
  job.together = together_;
  job.left_share = by_share_ ? candidates_.left_share(candidates_.begin(position)) : nullptr;
  job.threshold[0] = threshold_[0];
  job.threshold[1] = threshold_[1];
  top_bound_kernels().excess(job);
}

void SparseFinder::add(const FeatureTile& tile, int output_tile, const std::int32_t* histogram) {
  if (output_tile == 0) clear(tile);
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    if (output_tile == 0) {  // its bins are then near at hand
      candidates_.list_bins(tile, histogram);
      clear_bounds(position);
    }
    if (alone_)
      settle_alone(tile, position, {histogram, 0});
    else
      add_excess(float_terms_[static_cast<std::size_t>(output_tile)], position,
                 candidates_.sums(tile, position, output_tile, histogram));
  }
}

FoundSplit SparseFinder::search_rows(const FeatureTile& tile, const NodeRows& rows) {
  clear(tile);
  candidates_.list_rows(tile, rows);
  const TwoSidedOutputs* two_sided = node_.two_sided;
  // Both sides of an output together have no more than its bound: of two thresholds the lower one lets all of it
  // through.
  if (two_sided != nullptr)
    excess_of_others_ =
        two_sided->excess_of_others(job_.restricted ? threshold_[0] : std::min(threshold_[0], threshold_[1]));
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    clear_bounds(position);
    if (alone_) {
      settle_alone(tile, position, {});
    } else if (two_sided != nullptr) {
      for (int t = 0; t < two_sided->n_tiles(); ++t)
        add_excess(two_sided->tile(t), position, two_sided->sums(candidates_.sums(tile, position, t, nullptr), t));
    } else {
      for (int t = 0; t < terms_.layout().n_tiles; ++t)
        add_excess(float_terms_[static_cast<std::size_t>(t)], position, candidates_.sums(tile, position, t, nullptr));
    }
  }
  return best(tile, {});
}

float SparseFinder::base(std::size_t first, std::size_t last) const {
  const auto k = static_cast<float>(job_.k);
  if (job_.restricted) return k * threshold_[0] + excess_of_others_;
  if (!by_share_) return k * (threshold_[0] + threshold_[1]) + excess_of_others_;
  const float* shares = candidates_.left_share(0);
  const float share = 0.5f * (shares[first] + shares[last]);
  return k * (threshold_[0] * share + threshold_[1] * (1.0f - share));
}

// From what lies above the thresholds to bounds, of each candidate.
void SparseFinder::finish_bounds(std::size_t position) {
  const std::size_t end = candidates_.end(position), n_together = together_ ? kStepsTogether : 1;
  float highest = 0.0f;
  for (std::size_t from = candidates_.begin(position); from < end; from += n_together) {
    const std::size_t last = std::min(from + n_together, end) - 1;
    for (const bool missing_left : {false, true}) {
      const std::size_t side = missing_left ? 1 : 0;
      const float promised = base(2 * from + side, 2 * last + side) + bound_[2 * from + side];
      for (std::size_t s = from; s <= last; ++s) {
        bound_[2 * s + side] = is_allowed(2 * s + side) ? promised : 0.0f;
        highest = std::max(highest, bound_[2 * s + side]);
      }
    }
  }
  highest_[position] = highest;
}

FoundSplit SparseFinder::best(const FeatureTile& tile, const TileHistograms& histograms) {
  const std::size_t n_open = alone_ ? 0 : settle_promising(tile, histograms);
  if (together_)
    trial_.took(n_open, candidates_.n_steps());
  else
    trial_.did_without();
  FoundSplit found;
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    if (candidates_.has_none(position) || highest_[position] < least()) continue;
    find_sums(tile, position, histograms);
    score_open(tile, position, found.best);
  }
  return found;
}

std::size_t SparseFinder::settle_promising(const FeatureTile& tile, const TileHistograms& histograms) {
  for (std::size_t position = 0; position < tile.n_features(); ++position) finish_bounds(position);
  // The bar is where the best of them can put it before the others are looked at.
  const auto highest = static_cast<std::size_t>(std::max_element(highest_.begin(), highest_.end()) - highest_.begin());
  settle(tile, highest, histograms);
  std::size_t n_open = 0;
  for (std::size_t position = 0; position < tile.n_features(); ++position)
    if (position != highest) n_open += settle(tile, position, histograms);
  return n_open;
}

void SparseFinder::settle_alone(const FeatureTile& tile, std::size_t position, const TileHistograms& histograms) {
  constexpr float kUnknown = std::numeric_limits<float>::max();
  for (std::size_t at = 2 * candidates_.begin(position); at < 2 * candidates_.end(position); ++at)
    if (is_allowed(at)) bound_[at] = highest_[position] = kUnknown;
  settle(tile, position, histograms);
}

// Bounds below cannot be those of the best.
float SparseFinder::least() const { return job_.bar > job_.smallest ? job_.bar * (1.0f - job_.error) : 0.0f; }

void SparseFinder::find_sums(const FeatureTile& tile, std::size_t position, const TileHistograms& histograms) {
  for (int t = 0; t < terms_.layout().n_tiles; ++t)
    sums_[static_cast<std::size_t>(t)] =
        candidates_.sums(tile, position, t, histograms.first != nullptr ? histograms.of(t) : nullptr);
}

std::size_t SparseFinder::settle(const FeatureTile& tile, std::size_t position, const TileHistograms& histograms) {
  if (candidates_.has_none(position) || highest_[position] < least()) return 0;
  find_sums(tile, position, histograms);
  const std::size_t first = candidates_.begin(position);
  job_.steps = &candidates_.step(first);
  job_.n_steps = candidates_.end(position) - first;
  job_.inverse_left = candidates_.inverse_left(first);
  job_.inverse_right = candidates_.inverse_right(first);
  job_.left_share = job_.restricted ? nullptr : candidates_.left_share(first);
  job_.bound = bound_.data() + 2 * first;
  std::size_t n_open = 0, end = 0;
  for (std::size_t s = 0; s < job_.n_steps; ++s) {
    if (std::max(job_.bound[2 * s], job_.bound[2 * s + 1]) < least()) continue;
    ++n_open;
    end = s + 1;
  }
  job_.n_steps = end;  // none behind is the best
  top_bound_kernels().settle(job_);
  highest_[position] = *std::max_element(job_.bound, job_.bound + 2 * end);
  return n_open;
}

void SparseFinder::score_open(const FeatureTile& tile, std::size_t position, BestCandidate& best) {
  std::fill(left_.begin(), left_.end(), 0);
  add_missing(position);
  std::uint32_t row = 0;
  for (std::size_t s = candidates_.begin(position); s < candidates_.end(position); ++s) {
    const Step& step = candidates_.step(s);
    add_step(step, row);
    row = step.rows_end;
    for (const bool missing_left : {false, true}) {
      if (!(missing_left ? step.left_allowed : step.right_allowed)) continue;
      if (bound_[2 * s + (missing_left ? 1 : 0)] < least()) continue;
      if (missing_left)
        for (std::size_t c = 0; c < left_.size(); ++c) with_missing_[c] = left_[c] + missing_[c];
      Candidate candidate;
      candidate.score = joint_.children((missing_left ? with_missing_ : left_).data(), node_.totals,
                                        {tile.features[position], node_.bounds}, best.highest, scratch_);
      if (!reaches(candidate.score, best.highest)) continue;
      candidate.feature = tile.features[position];
      candidate.bin = candidates_.bin(tile, position, s);
      candidate.missing_left = missing_left;
      candidate.missing_seen = candidates_.missing_seen(position);
      best.offer(candidate);
    }
  }
}

// Adds the sums of a step to those to the left.
void SparseFinder::add_step(const Step& step, std::uint32_t first_row) {
  std::int32_t* left = left_.data();
  for (const StepSums& from : sums_) {
    const auto width = static_cast<std::size_t>(from.width);
    const auto add = [&](const std::int32_t* sums) {
      for (std::size_t c = 0; c < width; ++c) left[c] += sums[c];
    };
    if (from.histogram != nullptr)
      add(from.histogram + step.slot * width);
    else
      for (std::uint32_t i = first_row; i < step.rows_end; ++i) add(from.payload + from.order[i] * width);
    left += width;
  }
}

void SparseFinder::add_missing(std::size_t position) {
  std::fill(missing_.begin(), missing_.end(), 0);
  if (!candidates_.missing_seen(position)) return;
  std::int32_t* missing = missing_.data();
  for (const StepSums& from : sums_) {
    const auto width = static_cast<std::size_t>(from.width);
    const auto add = [&](const std::int32_t* sums) {
      for (std::size_t c = 0; c < width; ++c) missing[c] += sums[c];
    };
    if (from.histogram != nullptr)
      add(from.missing);
    else
      for (std::uint32_t i = from.n_rows - from.n_missing; i < from.n_rows; ++i)
        add(from.payload + from.order[i] * width);
    missing += width;
  }
}

}  // namespace polyleaf
