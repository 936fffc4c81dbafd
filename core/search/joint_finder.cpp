#include "search/joint_finder.hpp"

#include <algorithm>

namespace polyleaf {

int ordering_feature(const BinnedMatrix& matrix, int feature, int bin) {
  const auto n_bins = static_cast<int>(matrix.features[static_cast<std::size_t>(feature)].n_value_bins);
  return bin + 1 < n_bins ? feature : -1;
}

void JointFinder::add(const FeatureTile& tile, int output_tile, const std::int32_t* histogram) {
  if (output_tile == 0) {
    candidates_.clear(node_, tile);
    for (std::size_t position = 0; position < tile.n_features(); ++position) candidates_.list_bins(tile, histogram);
  }
  const PayloadLayout& layout = terms_.layout();
  const auto width = static_cast<std::size_t>(layout.width);
  const std::size_t stride = layout.n_channels();
  const std::size_t offset = static_cast<std::size_t>(output_tile) * width;
  // Reads of whole lanes may run past the end.
  left_.resize(candidates_.n_steps() * stride + PayloadLayout::kLane);
  missing_.resize(tile.n_features() * stride + PayloadLayout::kLane);
  with_missing_.resize(stride + PayloadLayout::kLane);
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    std::int32_t prefix[PayloadLayout::kMaxWidth] = {0};
    for (std::size_t s = candidates_.begin(position); s < candidates_.end(position); ++s) {
      const std::int32_t* bin = histogram + candidates_.step(s).slot * width;
      std::int32_t* left = left_.data() + s * stride + offset;
      for (std::size_t c = 0; c < width; ++c) left[c] = prefix[c] += bin[c];
    }
    if (candidates_.missing_seen(position))
      std::copy_n(missing_bin(tile, position, histogram, layout.width), width,
                  missing_.data() + position * stride + offset);
  }
}

const std::int32_t* JointFinder::left_of(std::size_t position, std::size_t step, bool missing_left) {
  const std::size_t stride = terms_.layout().n_channels();
  const std::int32_t* left = left_.data() + step * stride;
  if (!missing_left) return left;
  const std::int32_t* missing = missing_.data() + position * stride;
  for (std::size_t c = 0; c < stride; ++c) with_missing_[c] = left[c] + missing[c];
  return with_missing_.data();
}

// The last bin that goes left. Where values are bounded, a split that tells missing values from the rest is made at the
// very last one: it orders nothing then.
int JointFinder::bin_of(const FeatureTile& tile, std::size_t position, std::size_t step) const {
  if (node_.bounds != nullptr && !node_.bounds->low.empty() && candidates_.missing_seen(position)) {
    const std::size_t stride = terms_.layout().n_channels();
    const std::int64_t n_values = terms_.count(node_.totals) - terms_.count(missing_.data() + position * stride);
    if (terms_.count(left_.data() + step * stride) == n_values)
      return static_cast<int>(matrix_.features[static_cast<std::size_t>(tile.features[position])].n_value_bins) - 1;
  }
  return candidates_.bin(tile, position, step);
}

FoundSplit JointFinder::best(const FeatureTile& tile, const TileHistograms&) {
  FoundSplit found;
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    for (std::size_t s = candidates_.begin(position); s < candidates_.end(position); ++s) {
      Candidate candidate;
      candidate.feature = tile.features[position];
      candidate.bin = bin_of(tile, position, s);
      candidate.missing_seen = candidates_.missing_seen(position);
      const JointScore::Place place{ordering_feature(matrix_, candidate.feature, candidate.bin), node_.bounds};
      for (const bool missing_left : {false, true}) {
        if (!(missing_left ? candidates_.step(s).left_allowed : candidates_.step(s).right_allowed)) continue;
        const std::int32_t* left = left_of(position, s, missing_left);
        if (terms_.rules.min_child_weight > 0 && !terms_.heavy_enough(terms_.mean_hessian(left), node_.totals))
          continue;
        // No candidate below the best so far needs an exact score.
        candidate.score = joint_.children(left, node_.totals, place, found.best.highest, scratch_);
        candidate.missing_left = missing_left;
        if (reaches(candidate.score, found.best.highest)) found.best.offer(candidate);
      }
    }
  }
  return found;
}

}  // namespace polyleaf
