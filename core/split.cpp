#include "split.hpp"

#include <algorithm>

namespace polyleaf {

OutputTerms::OutputTerms(const Payload& payload, const Rules& rules, const double* gain_weight, const double* unit) {
  const PayloadLayout& layout = payload.layout;
  if (layout.hessian == HessianKind::kFull) return;  // scored as a whole
  const auto per_tile = static_cast<std::size_t>(layout.outputs_per_tile);
  padded = (per_tile + PayloadLayout::kLane - 1) / PayloadLayout::kLane * PayloadLayout::kLane;
  const std::size_t size = padded * static_cast<std::size_t>(layout.n_tiles);
  factor.assign(size, 0.0);
  hessian_unit.assign(size, 0.0);
  lambda.assign(size, 1.0);
  alpha.assign(size, 0.0);
  for (std::size_t j = 0; j < static_cast<std::size_t>(layout.n_outputs); ++j) {
    const std::size_t at = j / per_tile * padded + j % per_tile;
    factor[at] = gain_weight[j] * payload.gradient_unit[j] * payload.gradient_unit[j];
    hessian_unit[at] = payload.hessian_unit[j];
    lambda[at] = rules.reg_lambda;
    alpha[at] = rules.reg_alpha / unit[j] / payload.gradient_unit[j];
  }
}

double SplitFinder::node_score(const std::int32_t* totals) const {
  const PayloadLayout& layout = payload_.layout;
  const double shared = layout.hessian == HessianKind::kShared
                            ? totals[layout.weight_channel()] * payload_.hessian_unit[0]
                            : static_cast<double>(node_count(totals));
  double score = 0.0;
  for (int t = 0; t < layout.n_tiles; ++t) {
    const std::int32_t* sums = totals + t * layout.width;
    const std::size_t first = static_cast<std::size_t>(t) * terms_.padded;
    for (int j = 0; j < layout.outputs_in(t); ++j) {
      const std::size_t at = first + static_cast<std::size_t>(j);
      const double hessian = diagonal() ? sums[layout.hessian_channel() + j] * terms_.hessian_unit[at] : shared;
      score += terms_.factor[at] * score_term(soft_threshold(sums[j], terms_.alpha[at]), hessian + terms_.lambda[at]);
    }
  }
  return score;
}

// Mean over the outputs of the Hessian (the diagonal of a full one).
double SplitFinder::mean_hessian(const std::int32_t* sums) const {
  const PayloadLayout& layout = payload_.layout;
  const auto d = static_cast<std::size_t>(layout.n_outputs);
  double sum = 0.0;
  switch (layout.hessian) {
    case HessianKind::kCount:
    case HessianKind::kShared:
      return sums[layout.weight_channel()] * payload_.hessian_unit[0];
    case HessianKind::kDiagonal:
      for (std::size_t j = 0; j < d; ++j) {
        const int t = static_cast<int>(j) / layout.outputs_per_tile;
        const int at = static_cast<int>(j) % layout.outputs_per_tile;
        sum += sums[t * layout.width + layout.hessian_channel() + at] * payload_.hessian_unit[j];
      }
      break;
    case HessianKind::kFull:
      for (std::size_t j = 0; j < d; ++j) {
        const std::size_t entry = triangle(j + 1) - 1;
        sum += sums[1 + d + entry] * payload_.hessian_unit[entry];
      }
      break;
  }
  return sum / layout.n_outputs;
}

const std::int32_t* SplitFinder::missing_bin(const FeatureTile& tile, std::size_t position,
                                             const std::int32_t* histogram) const {
  const FeatureBins& bins = matrix_.features[static_cast<std::size_t>(tile.features[position])];
  if (!bins.has_missing) return nullptr;
  return histogram +
         (tile.slot_begin[position] + bins.missing_code()) * static_cast<std::size_t>(payload_.layout.width);
}

void SplitFinder::begin(Scan& scan, const FeatureTile& tile, const std::int32_t* histogram,
                        const std::int32_t* totals) const {
  const PayloadLayout& layout = payload_.layout;
  const auto width = static_cast<std::size_t>(layout.width);
  const int count_at = layout.count_channel();
  const int weight_at = layout.weight_channel();  // the count itself unless weights are given
  const std::int64_t n = node_count(totals);
  const std::int64_t least = rules_.min_samples_leaf;
  const double weight_unit = payload_.hessian_unit[0];
  const double total = totals[weight_at] * weight_unit;
  const auto inverse = [&](double weight) { return score_term(1.0, weight + rules_.reg_lambda); };

  scan.steps.clear();
  scan.step_begin.assign(1, 0);
  scan.inverse_left.clear();
  scan.inverse_right.clear();
  scan.left_weight.clear();
  scan.missing_seen.assign(tile.n_features(), 0);
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    const int feature = tile.features[position];
    if (allowed(feature)) {
      const std::int32_t* missing = missing_bin(tile, position, histogram);
      const std::int64_t n_missing = missing != nullptr ? missing[count_at] : 0;
      const std::int64_t weight_missing = missing != nullptr ? missing[weight_at] : 0;
      scan.missing_seen[position] = n_missing > 0 ? 1 : 0;
      std::int64_t count = 0;
      std::int64_t weight = 0;
      const std::uint32_t first = tile.slot_begin[position];
      const std::uint32_t last = first + matrix_.features[static_cast<std::size_t>(feature)].n_value_bins;
      for (std::uint32_t slot = first; slot < last && count + n_missing < n; ++slot) {
        const std::int32_t* bin = histogram + slot * width;
        if (bin[count_at] == 0) continue;  // the same split as the bin before: the lower one wins
        count += bin[count_at];
        weight += bin[weight_at];
        Step step{slot, count >= least && n - count >= least, false};
        step.left_allowed = n_missing > 0 && count + n_missing >= least && n - count - n_missing >= least;
        scan.steps.push_back(step);
        if (diagonal() || whole_ != nullptr) continue;
        for (const std::int64_t left : {weight, weight + weight_missing}) {
          const double left_weight = static_cast<double>(left) * weight_unit;
          scan.inverse_left.push_back(inverse(left_weight));
          scan.inverse_right.push_back(inverse(total - left_weight));
          scan.left_weight.push_back(left_weight);
        }
      }
    }
    scan.step_begin.push_back(scan.steps.size());
  }
  scan.score.assign(2 * scan.steps.size(), 0.0);
  if (scan.left_weight.empty()) scan.left_weight.assign(2 * scan.steps.size(), 0.0);
  if (whole_ == nullptr) return;
  // Reads of whole lanes may run past the end.
  scan.left.resize(scan.steps.size() * layout.n_channels() + PayloadLayout::kLane);
  scan.missing.resize(tile.n_features() * layout.n_channels() + PayloadLayout::kLane);
  scan.with_missing.resize(layout.n_channels() + PayloadLayout::kLane);
}

void SplitFinder::collect(Scan& scan, const FeatureTile& tile, int output_tile, const std::int32_t* histogram) const {
  const auto width = static_cast<std::size_t>(payload_.layout.width);
  const std::size_t stride = payload_.layout.n_channels();
  const std::size_t offset = static_cast<std::size_t>(output_tile) * width;
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    std::int32_t prefix[PayloadLayout::kMaxWidth] = {0};
    for (std::size_t s = scan.step_begin[position]; s < scan.step_begin[position + 1]; ++s) {
      const std::int32_t* bin = histogram + scan.steps[s].slot * width;
      std::int32_t* left = scan.left.data() + s * stride + offset;
      for (std::size_t c = 0; c < width; ++c) left[c] = prefix[c] += bin[c];
    }
    if (scan.missing_seen[position] != 0)
      std::copy_n(missing_bin(tile, position, histogram), width, scan.missing.data() + position * stride + offset);
  }
}

void SplitFinder::score_whole(Scan& scan, const FeatureTile& tile, const std::int32_t* totals) const {
  const std::size_t stride = payload_.layout.n_channels();
  double enough = -1.0;  // the best score so far: no candidate below it needs an exact one
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    for (std::size_t s = scan.step_begin[position]; s < scan.step_begin[position + 1]; ++s) {
      for (const bool missing_left : {false, true}) {
        if (!(missing_left ? scan.steps[s].left_allowed : scan.steps[s].right_allowed)) continue;
        const std::int32_t* left = scan.left.data() + s * stride;
        if (missing_left) {
          const std::int32_t* missing = scan.missing.data() + position * stride;
          for (std::size_t c = 0; c < stride; ++c) scan.with_missing[c] = left[c] + missing[c];
          left = scan.with_missing.data();
        }
        const std::size_t at = 2 * s + (missing_left ? 1 : 0);
        scan.left_weight[at] = mean_hessian(left);
        if (!heavy_enough(scan.left_weight[at], totals)) continue;
        scan.score[at] = whole_->children(left, totals, enough, scan.scratch);
        enough = std::max(enough, scan.score[at]);
      }
    }
  }
}

bool SplitFinder::heavy_enough(double left_weight, const std::int32_t* totals) const {
  if (rules_.min_child_weight <= 0) return true;
  return left_weight >= rules_.min_child_weight && mean_hessian(totals) - left_weight >= rules_.min_child_weight;
}

void SplitFinder::add(Scan& scan, const FeatureTile& tile, int output_tile, const std::int32_t* histogram,
                      const std::int32_t* totals) const {
  if (whole_ != nullptr) return collect(scan, tile, output_tile, histogram);
  const PayloadLayout& layout = payload_.layout;
  const std::size_t first_term = static_cast<std::size_t>(output_tile) * terms_.padded;
  ScanTile job{};
  job.histogram = histogram;
  job.width = layout.width;
  job.n_outputs = layout.outputs_in(output_tile);
  job.hessian_channel = layout.hessian_channel();
  job.totals = totals + output_tile * layout.width;
  job.factor = terms_.factor.data() + first_term;
  job.hessian_unit = terms_.hessian_unit.data() + first_term;
  job.lambda = terms_.lambda.data() + first_term;
  job.alpha = terms_.alpha.data() + first_term;
  job.has_alpha = rules_.reg_alpha > 0;
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    const std::size_t from = scan.step_begin[position];
    job.n_steps = scan.step_begin[position + 1] - from;
    if (job.n_steps == 0) continue;
    job.steps = scan.steps.data() + from;
    job.missing = missing_bin(tile, position, histogram);
    job.score = scan.score.data() + 2 * from;
    if (!diagonal()) {
      job.inverse_left = scan.inverse_left.data() + 2 * from;
      job.inverse_right = scan.inverse_right.data() + 2 * from;
    } else if (rules_.min_child_weight > 0) {
      job.left_weight = scan.left_weight.data() + 2 * from;
    }
    kernels().scan(job);
  }
}

BestCandidate SplitFinder::best(Scan& scan, const FeatureTile& tile, const std::int32_t* totals) const {
  if (whole_ != nullptr) score_whole(scan, tile, totals);
  // Tile by tile, a diagonal Hessian is summed over the outputs.
  const double share = diagonal() && whole_ == nullptr ? 1.0 / payload_.layout.n_outputs : 1.0;
  BestCandidate best;
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    for (std::size_t s = scan.step_begin[position]; s < scan.step_begin[position + 1]; ++s) {
      const Step& step = scan.steps[s];
      for (const bool missing_left : {false, true}) {
        if (!(missing_left ? step.left_allowed : step.right_allowed)) continue;
        const std::size_t at = 2 * s + (missing_left ? 1 : 0);
        if (!heavy_enough(scan.left_weight[at] * share, totals)) continue;
        Candidate candidate;
        candidate.score = scan.score[at];
        candidate.feature = tile.features[position];
        candidate.bin = static_cast<int>(step.slot - tile.slot_begin[position]);
        candidate.missing_left = missing_left;
        candidate.missing_seen = scan.missing_seen[position] != 0;
        best.offer(candidate);
      }
    }
  }
  return best;
}

}  // namespace polyleaf
