#include "search/late_list.hpp"

#include <algorithm>
#include <limits>

namespace polyleaf {

// Bins that are not listed are fast, and those of few outputs even more so.
double LateListingFinder::rows_per_bin() const {
  constexpr double kTimesFaster = 4.0, kFewOutputsTimesFaster = 12.0;
  const bool few = terms_.layout().n_outputs <= estimate_kernels().few_outputs;
  return kFewRowsPerBin / (few ? kFewOutputsTimesFaster : kTimesFaster);
}

BinsTile LateListingFinder::prepare_bins() const {
  const PayloadLayout& layout = terms_.layout();
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  BinsTile job{};
  job.width = layout.width;
  job.terms = estimates_.tile(node_, 0);
  job.count_channel = layout.count_channel();
  job.weight_channel = layout.weight_channel();
  job.least_rows = static_cast<std::int32_t>(std::min<std::int64_t>(terms_.rules.min_samples_leaf, kMost));
  job.shared = !terms_.diagonal();
  job.shared_unit = terms_.payload.hessian_unit[0];
  job.shared_lambda = terms_.rules.reg_lambda;
  job.least_weight = terms_.rules.min_child_weight;
  return job;
}

float LateListingFinder::look_at(const FeatureTile& tile, std::size_t position, const std::int32_t* histogram,
                                 float bar, BinsTile& job) const {
  const std::uint32_t first = tile.slot_begin[position];
  job.bins = histogram + first * static_cast<std::size_t>(job.width);
  job.n_bins = tile.value_end[position] - first;
  job.missing = missing_bin(tile, position, histogram, job.width);
  job.bar = bar > kSmallestEstimate ? bar : 0.0f;
  return estimate_kernels().highest_estimate(job);
}

void LateListingFinder::add(const FeatureTile& tile, int, const std::int32_t* histogram) {
  clear(tile);
  if (node_.sides.any() && !tile.keeps_codes) return add_by_sides(tile, histogram);
  BinsTile job = prepare_bins();
  float bar = bar_;
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    if (!node_.allows(tile.features[position])) continue;
    highest_[position] = look_at(tile, position, histogram, bar, job);
    bar = std::max(bar, highest_[position]);
  }
}

void LateListingFinder::add_by_sides(const FeatureTile& tile, const std::int32_t* histogram) {
  BinsTile job = prepare_bins();
  const SideBounds bounds(job, estimates_.error());
  const SideArrays& sides = node_.sides;
  const std::size_t n = tile.n_features();
  promised_by_side_.resize(n);
  promised_together_.resize((n + kSidesTogether - 1) / kSidesTogether);
  float* const promised = promised_by_side_.data();
  bounds.highest(sides, tile.first_feature, n, promised, promised_together_.data());
  float bar = bar_;
  const auto is_enough = [&](float promise) { return promise >= (bar > kSmallestEstimate ? bar : 0.0f); };
  const auto look = [&](std::size_t position) {
    const std::size_t at = tile.first_feature + position;
    if (!node_.allows(tile.features[position])) return sides.set(at, {SideBound::kNever, 0.0f, 0.0f});
    const bool known = sides.is_known(at);  // else the highest of all is wanted, not only of those that reach the bar
    const float highest = look_at(tile, position, histogram, known ? bar : 0.0f, job);
    highest_[position] = highest;
    bar = std::max(bar, highest);
    if (known) return;
    sides.set(
        at, bounds.of_highest(highest, histogram + tile.frequent_slot[position] * static_cast<std::size_t>(job.width)));
  };
  // The one that promises most comes first: it says what others have to reach.
  const auto highest_of = [](const float* begin, const float* end) {
    return static_cast<std::size_t>(std::max_element(begin, end) - begin);
  };
  const float* together = promised_together_.data();
  const std::size_t begin = highest_of(together, together + promised_together_.size()) * kSidesTogether;
  const std::size_t first = begin + highest_of(promised + begin, promised + std::min(n, begin + kSidesTogether));
  if (is_enough(promised[first])) look(first);
  for (std::size_t from = 0; from < n; from += kSidesTogether) {
    if (!is_enough(together[from / kSidesTogether])) continue;
    for (std::size_t position = from; position < std::min(n, from + kSidesTogether); ++position)
      if (position != first && is_enough(promised[position])) look(position);
  }
}

FoundSplit LateListingFinder::best(const FeatureTile& tile, const TileHistograms& histograms) {
  const float highest = raise_bar();
  const float least = least_estimate();
  if (highest < least) return {};
  EstimateTile job = prepare(0);
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    if (highest_[position] < least) {
      candidates_.list_none();
      continue;
    }
    candidates_.list_bins(tile, histograms.first);
    clear_estimates(position);
    estimate(job, position, candidates_.sums(tile, position, 0, histograms.first));
  }
  return score_close(tile, least, histograms);
}

}  // namespace polyleaf
