#include "search/split_finder.hpp"

#include <algorithm>

namespace polyleaf {

void ExactScores::clear(const Candidates& candidates, std::size_t position) {
  const std::size_t end = 2 * candidates.end(position);
  if (score_.size() < end) {
    score_.resize(2 * end);
    left_weight_.resize(2 * end);
  }
  std::fill(score_.begin() + static_cast<std::ptrdiff_t>(2 * candidates.begin(position)),
            score_.begin() + static_cast<std::ptrdiff_t>(end), 0.0);
  std::fill(left_weight_.begin() + static_cast<std::ptrdiff_t>(2 * candidates.begin(position)),
            left_weight_.begin() + static_cast<std::ptrdiff_t>(end), 0.0);
}

ScanTile ExactScores::prepare(const SearchedNode& node, int output_tile) const {
  ScanTile job{};
  job.totals = node.totals + output_tile * terms_.layout().width;
  job.terms = terms_.tile(output_tile);
  job.has_alpha = terms_.rules.reg_alpha > 0;
  job.moderate = terms_.moderate;
  return job;
}

void ExactScores::add(ScanTile& job, const Candidates& candidates, std::size_t position, const StepSums& sums) {
  const std::size_t first = candidates.begin(position);
  job.sums = sums;
  job.steps = &candidates.step(first);
  job.n_steps = candidates.end(position) - first;
  job.inverse_left = candidates.inverse_left(first);
  job.inverse_right = candidates.inverse_right(first);
  job.score = score_.data() + 2 * first;
  job.left_weight = terms_.diagonal() && terms_.rules.min_child_weight > 0 ? left_weight_.data() + 2 * first : nullptr;
  score_kernels().scan(job);
}

void ExactScores::offer(const Candidates& candidates, const SearchedNode& node, const FeatureTile& tile,
                        std::size_t position, BestCandidate& best) const {
  // A diagonal Hessian was summed over the outputs; of a shared one, light candidates are not listed as allowed.
  const bool by_weight = terms_.diagonal();
  const double share = 1.0 / terms_.layout().n_outputs;
  for (std::size_t s = candidates.begin(position); s < candidates.end(position); ++s) {
    const Step& step = candidates.step(s);
    for (const bool missing_left : {false, true}) {
      if (!(missing_left ? step.left_allowed : step.right_allowed)) continue;
      const std::size_t at = 2 * s + (missing_left ? 1 : 0);
      if (!reaches(score_[at], best.highest)) continue;  // most do not
      if (by_weight && !terms_.heavy_enough(left_weight_[at] * share, node.totals)) continue;
      Candidate candidate;
      candidate.score = score_[at];
      candidate.feature = tile.features[position];
      candidate.bin = candidates.bin(tile, position, s);
      candidate.missing_left = missing_left;
      candidate.missing_seen = candidates.missing_seen(position);
      best.offer(candidate);
    }
  }
}

void SplitFinder::add(const FeatureTile& tile, int output_tile, const std::int32_t* histogram) {
  if (output_tile == 0) candidates_.clear(node_, tile);
  ScanTile job = scores_.prepare(node_, output_tile);
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    if (output_tile == 0) {  // its bins are then near at hand
      candidates_.list_bins(tile, histogram);
      scores_.clear(candidates_, position);
    }
    if (!candidates_.has_none(position))
      scores_.add(job, candidates_, position, candidates_.sums(tile, position, output_tile, histogram));
  }
}

FoundSplit SplitFinder::best(const FeatureTile& tile, const TileHistograms&) {
  FoundSplit found;
  for (std::size_t position = 0; position < tile.n_features(); ++position)
    scores_.offer(candidates_, node_, tile, position, found.best);
  return found;
}

FoundSplit SplitFinder::search_rows(const FeatureTile& tile, const NodeRows& rows) {
  candidates_.clear(node_, tile);
  candidates_.list_rows(tile, rows);
  for (std::size_t position = 0; position < tile.n_features(); ++position) scores_.clear(candidates_, position);
  for (int t = 0; t < terms_.layout().n_tiles; ++t) {
    ScanTile job = scores_.prepare(node_, t);
    for (std::size_t position = 0; position < tile.n_features(); ++position)
      if (!candidates_.has_none(position))
        scores_.add(job, candidates_, position, candidates_.sums(tile, position, t, nullptr));
  }
  return best(tile, {});
}

}  // namespace polyleaf
