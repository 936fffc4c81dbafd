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

void LateListingFinder::add(const FeatureTile& tile, int, const std::int32_t* histogram) {
  clear(tile);
  BinsTile job = prepare_bins();
  float bar = bar_;
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    if (!node_.allows(tile.features[position])) continue;
    const std::uint32_t first = tile.slot_begin[position];
    job.bins = histogram + first * static_cast<std::size_t>(job.width);
    job.n_bins = tile.value_end[position] - first;
    job.missing = missing_bin(tile, position, histogram, job.width);
    job.bar = bar > kSmallestEstimate ? bar : 0.0f;
    highest_[position] = estimate_kernels().highest_estimate(job);
    bar = std::max(bar, highest_[position]);
  }
}

FoundSplit LateListingFinder::best(const FeatureTile& tile, const TileHistograms& histograms) {
  const float least = least_estimate();
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
