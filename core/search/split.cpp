#include "search/split.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/estimate.hpp"
#include "kernels/score.hpp"

namespace polyleaf {
namespace {

// Factors, relative to the largest, that float32 holds with room for what they are multiplied with.
constexpr double kSmallestFactor = 1e-30;
// Below, float32 may have lost small terms.
constexpr float kSmallestEstimate = 1e-25f;

}  // namespace

OutputTerms::OutputTerms(const Payload& payload, const Rules& rules, const double* gain_weight, const double* unit) {
  const PayloadLayout& layout = payload.layout;
  if (layout.hessian == HessianKind::kFull) return;  // scored as a whole
  moderate = payload.hessian_is_positive && rules.reg_lambda > 1e-100 && rules.reg_lambda < 1e100;
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
    // Sums have 31 bits at most, those of gradients and of Hessians.
    moderate = moderate && hessian_unit[at] < 1e90;
    alpha[at] = rules.reg_alpha / unit[j] / payload.gradient_unit[j];
  }
  estimate_terms(payload, rules);
}

// Sums have 31 bits or fewer: with these bounds, squares, denominators and their products stay within float32.
void OutputTerms::estimate_terms(const Payload& payload, const Rules& rules) {
  const auto within = [](double value, double low, double high) { return value >= low && value <= high; };
  bool fits = rules.reg_alpha == 0 && payload.hessian_is_positive && within(rules.reg_lambda, 1e-6, 1e6);
  double largest = 0.0;
  for (std::size_t j = 0; j < factor.size(); ++j) largest = std::max(largest, factor[j]);
  const double coarsest = 1e-2 * std::ldexp(1.0, 31 - payload.layout.sum_bits());
  for (const double one : hessian_unit) fits = fits && (one == 0 || within(one, 1e-25, coarsest) || one == 1);
  for (const double one : factor) fits = fits && (one == 0 || one >= kSmallestFactor * largest);
  if (!fits || !within(largest, 1e-200, 1e200)) return;
  constexpr std::size_t kPadded = PayloadLayout::kMaxWidth;
  const std::size_t n_tiles = factor.size() / padded;
  factor32.assign(n_tiles * kPadded, 0.0f);
  hessian_unit32.assign(n_tiles * kPadded, 0.0f);
  lambda32.assign(n_tiles * kPadded, 1.0f);
  for (std::size_t j = 0; j < factor.size(); ++j) {
    const std::size_t at = j / padded * kPadded + j % padded;
    factor32[at] = static_cast<float>(factor[j] / largest);
    hessian_unit32[at] = static_cast<float>(hessian_unit[j]);
    lambda32[at] = static_cast<float>(lambda[j]);
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

// The last bin that goes left. Where values are bounded, a split that tells missing values from the rest is made at the
// very last one: it orders nothing then.
int SplitFinder::bin_of(const Scan& scan, const FeatureTile& tile, std::size_t position, std::size_t step,
                        const std::int32_t* totals) const {
  if (joint_ != nullptr && scan.bounds != nullptr && !scan.bounds->low.empty() && scan.missing_seen[position] != 0) {
    const std::size_t stride = payload_.layout.n_channels();
    const std::int64_t n_values = node_count(totals) - node_count(scan.missing.data() + position * stride);
    if (node_count(scan.left.data() + step * stride) == n_values)
      return static_cast<int>(matrix_.features[static_cast<std::size_t>(tile.features[position])].n_value_bins) - 1;
  }
  return static_cast<int>(scan.steps[step].slot - tile.slot_begin[position]);
}

const std::int32_t* SplitFinder::missing_bin(const FeatureTile& tile, std::size_t position,
                                             const std::int32_t* histogram) const {
  if (!tile.has_missing(position)) return nullptr;
  return histogram + tile.value_end[position] * static_cast<std::size_t>(payload_.layout.width);
}

void SplitFinder::clear(Scan& scan, const FeatureTile& tile) const {
  const std::size_t most = tile.n_slots();
  scan.n_steps = 0;
  scan.step_begin.assign(1, 0);
  if (scan.steps.size() < most) {
    scan.steps.resize(most);
    scan.score.resize(2 * most);
    scan.estimated.resize(2 * most);
    scan.left_weight.resize(2 * most);
    scan.inverse_left.resize(2 * most);
    scan.inverse_right.resize(2 * most);
  }
  scan.highest.assign(tile.n_features(), 0.0f);
  scan.order.clear();
  scan.n_missing.assign(tile.n_features(), 0);
  scan.missing_seen.assign(tile.n_features(), 0);
}

// Lists candidates one after the other, by the count and weight channels of what lies to their left.
class SplitFinder::StepList {
 public:
  StepList(const SplitFinder& finder, Scan& scan, const std::int32_t* totals)
      : scan_(scan),
        n_(finder.node_count(totals)),
        least_(finder.rules_.min_samples_leaf),
        least_weight_(finder.rules_.min_child_weight),
        lambda_(finder.rules_.reg_lambda),
        unit_(finder.payload_.hessian_unit[0]),
        total_(totals[finder.payload_.layout.weight_channel()] * unit_),
        shared_(!finder.diagonal() && finder.joint_ == nullptr),
        estimated_(finder.estimates_) {}

  // Whether some of the bins so far, or of those that follow, may be the last to the left.
  bool goes_on(const Counts& left) const { return n_ - left.count >= least_; }

  void add(std::uint32_t slot, std::uint32_t rows_end, const Counts& left, const Counts& missing) {
    const std::size_t at = scan_.n_steps++;
    const std::int64_t with_missing = left.count + missing.count;
    Step step{slot, rows_end, left.count >= least_ && n_ - left.count >= least_,
              missing.count > 0 && with_missing >= least_ && n_ - with_missing >= least_};
    if (estimated_) {
      scan_.estimated[2 * at] = scan_.estimated[2 * at + 1] = 0.0f;
    } else {
      scan_.score[2 * at] = scan_.score[2 * at + 1] = 0.0;
      scan_.left_weight[2 * at] = scan_.left_weight[2 * at + 1] = 0.0;
    }
    if (shared_) {
      step.right_allowed &= weigh(2 * at, static_cast<double>(left.weight) * unit_);
      if (missing.count > 0)
        step.left_allowed &= weigh(2 * at + 1, static_cast<double>(left.weight + missing.weight) * unit_);
    }
    scan_.steps[at] = step;
  }

 private:
  // Whether both sides weigh enough, of a Hessian that all outputs share.
  bool weigh(std::size_t at, double left_weight) {
    const double right_weight = total_ - left_weight;
    scan_.inverse_left[at] = score_term(1.0, left_weight + lambda_);
    scan_.inverse_right[at] = score_term(1.0, right_weight + lambda_);
    return least_weight_ <= 0 || (left_weight >= least_weight_ && right_weight >= least_weight_);
  }

  Scan& scan_;
  const std::int64_t n_;
  const std::int64_t least_;
  const double least_weight_;
  const double lambda_;
  const double unit_;
  const double total_;
  const bool shared_;
  const bool estimated_;
};

// Lists the candidates of one feature.
void SplitFinder::list_bins(StepList& list, Scan& scan, const FeatureTile& tile, std::size_t position,
                            const std::int32_t* histogram) const {
  const PayloadLayout& layout = payload_.layout;
  const auto width = static_cast<std::size_t>(layout.width);
  const auto counts = [&](const std::int32_t* bin) {
    // The weight channel is the count itself unless weights are given.
    return Counts{bin[layout.count_channel()], bin[layout.weight_channel()]};
  };
  if (allowed(scan, tile.features[position])) {
    const std::int32_t* missing_vector = missing_bin(tile, position, histogram);
    const Counts missing = missing_vector != nullptr ? counts(missing_vector) : Counts{};
    scan.missing_seen[position] = missing.count > 0 ? 1 : 0;
    Counts left;
    for (std::uint32_t slot = tile.slot_begin[position]; slot < tile.value_end[position]; ++slot) {
      const Counts bin = counts(histogram + slot * width);
      if (bin.count == 0) continue;  // the same split as the bin before: the lower one wins
      left.count += bin.count;
      left.weight += bin.weight;
      if (!list.goes_on(left)) break;
      list.add(slot, 0, left, missing);
    }
  }
  scan.step_begin.push_back(scan.n_steps);
}

void SplitFinder::begin_rows(Scan& scan, const FeatureTile& tile, const NodeRows& rows,
                             const std::int32_t* totals) const {
  const PayloadLayout& layout = payload_.layout;
  const std::size_t n_rows = rows.size();
  const std::int32_t* weights = rows.tile(0) + layout.weight_channel();
  scan.rows = &rows;
  clear(scan, tile);
  StepList list(*this, scan, totals);
  scan.order.resize(tile.n_features() * n_rows);
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    const auto feature = static_cast<std::size_t>(tile.features[position]);
    if (allowed(scan, tile.features[position])) {
      const FeatureBins& bins = matrix_.features[feature];
      std::uint32_t* order = scan.order.data() + position * n_rows;
      scan.bin_end.assign(bins.n_bins() + 1, 0);  // counting sort
      for (std::size_t i = 0; i < n_rows; ++i) ++scan.bin_end[tile.code(rows.row(i), position) + 1];
      for (std::size_t b = 0; b < bins.n_bins(); ++b) scan.bin_end[b + 1] += scan.bin_end[b];
      for (std::size_t i = 0; i < n_rows; ++i) order[scan.bin_end[tile.code(rows.row(i), position)]++] = rows.place(i);
      const auto sum = [&](std::uint32_t begin, std::uint32_t end) {
        Counts out{end - begin, 0};
        for (std::uint32_t i = begin; i < end; ++i)
          out.weight += weights[order[i] * static_cast<std::size_t>(layout.width)];
        return out;
      };
      const auto n = static_cast<std::uint32_t>(n_rows);
      const std::uint32_t n_values = scan.bin_end[bins.n_value_bins - 1];
      const Counts missing = sum(n_values, n);
      scan.n_missing[position] = n - n_values;
      scan.missing_seen[position] = missing.count > 0 ? 1 : 0;
      Counts left;
      for (std::uint32_t b = 0, begin = 0; begin < n_values; begin = scan.bin_end[b++]) {
        const std::uint32_t end = scan.bin_end[b];
        if (end == begin) continue;
        const Counts bin = sum(begin, end);
        left.count += bin.count;
        left.weight += bin.weight;
        if (!list.goes_on(left)) break;
        list.add(tile.slot_begin[position] + b, end, left, missing);
      }
    }
    scan.step_begin.push_back(scan.n_steps);
  }
}

void SplitFinder::collect(Scan& scan, const FeatureTile& tile, int output_tile, const std::int32_t* histogram) const {
  const auto width = static_cast<std::size_t>(payload_.layout.width);
  const std::size_t stride = payload_.layout.n_channels();
  const std::size_t offset = static_cast<std::size_t>(output_tile) * width;
  // Reads of whole lanes may run past the end.
  scan.left.resize(scan.n_steps * stride + PayloadLayout::kLane);
  scan.missing.resize(tile.n_features() * stride + PayloadLayout::kLane);
  scan.with_missing.resize(stride + PayloadLayout::kLane);
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

void SplitFinder::score_jointly(Scan& scan, const FeatureTile& tile, const std::int32_t* totals) const {
  const std::size_t stride = payload_.layout.n_channels();
  double enough = -1.0;  // the best score so far: no candidate below it needs an exact one
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    for (std::size_t s = scan.step_begin[position]; s < scan.step_begin[position + 1]; ++s) {
      const int bin = bin_of(scan, tile, position, s, totals);
      const JointScore::Place place{ordering_feature(tile.features[position], bin), scan.bounds};
      for (const bool missing_left : {false, true}) {
        if (!(missing_left ? scan.steps[s].left_allowed : scan.steps[s].right_allowed)) continue;
        const std::int32_t* left = scan.left.data() + s * stride;
        if (missing_left) {
          const std::int32_t* missing = scan.missing.data() + position * stride;
          for (std::size_t c = 0; c < stride; ++c) scan.with_missing[c] = left[c] + missing[c];
          left = scan.with_missing.data();
        }
        const std::size_t at = 2 * s + (missing_left ? 1 : 0);
        if (rules_.min_child_weight > 0) scan.left_weight[at] = mean_hessian(left);
        if (!heavy_enough(scan.left_weight[at], totals)) continue;
        scan.score[at] = joint_->children(left, totals, place, enough, scan.scratch);
        enough = std::max(enough, scan.score[at]);
      }
    }
  }
}

bool SplitFinder::heavy_enough(double left_weight, const std::int32_t* totals) const {
  if (rules_.min_child_weight <= 0) return true;
  return left_weight >= rules_.min_child_weight && mean_hessian(totals) - left_weight >= rules_.min_child_weight;
}

ScanTile SplitFinder::scan_job(const Scan& scan, int output_tile, const std::int32_t* histogram,
                               const std::int32_t* totals) const {
  const PayloadLayout& layout = payload_.layout;
  const std::size_t first_term = static_cast<std::size_t>(output_tile) * terms_.padded;
  ScanTile job{};
  job.histogram = histogram;
  job.payload = histogram == nullptr ? scan.rows->tile(output_tile) : nullptr;
  job.width = layout.width;
  job.n_outputs = layout.outputs_in(output_tile);
  job.hessian_channel = layout.hessian_channel();
  job.totals = totals + output_tile * layout.width;
  job.factor = terms_.factor.data() + first_term;
  job.hessian_unit = terms_.hessian_unit.data() + first_term;
  job.lambda = terms_.lambda.data() + first_term;
  job.alpha = terms_.alpha.data() + first_term;
  job.has_alpha = rules_.reg_alpha > 0;
  job.moderate = terms_.moderate;
  if (estimates_) {
    const std::size_t first = static_cast<std::size_t>(output_tile) * PayloadLayout::kMaxWidth;
    job.factor32 = terms_.factor32.data() + first;
    job.hessian_unit32 = terms_.hessian_unit32.data() + first;
    job.lambda32 = terms_.lambda32.data() + first;
  }
  return job;
}

// Points the job to the candidates of one feature.
void SplitFinder::aim(ScanTile& job, Scan& scan, const FeatureTile& tile, std::size_t position) const {
  const std::size_t from = scan.step_begin[position];
  job.steps = scan.steps.data() + from;
  job.n_steps = scan.step_begin[position + 1] - from;
  if (job.histogram != nullptr) {
    job.missing = missing_bin(tile, position, job.histogram);
  } else {
    job.n_rows = static_cast<std::uint32_t>(scan.order.size() / tile.n_features());
    job.order = scan.order.data() + position * job.n_rows;
    job.n_missing = scan.n_missing[position];
  }
  job.estimated = scan.estimated.data() + 2 * from;
  job.score = scan.score.data() + 2 * from;
  if (!diagonal()) {
    job.inverse_left = scan.inverse_left.data() + 2 * from;
    job.inverse_right = scan.inverse_right.data() + 2 * from;
  } else if (rules_.min_child_weight > 0) {
    job.left_weight = scan.left_weight.data() + 2 * from;
  }
}

void SplitFinder::add(Scan& scan, const FeatureTile& tile, int output_tile, const std::int32_t* histogram,
                      const std::int32_t* totals) const {
  const bool first = output_tile == 0 && histogram != nullptr;
  if (first) clear(scan, tile);
  StepList list(*this, scan, totals);
  if (joint_ != nullptr) {
    for (std::size_t position = 0; first && position < tile.n_features(); ++position)
      list_bins(list, scan, tile, position, histogram);
    return collect(scan, tile, output_tile, histogram);
  }
  if (lists_late(histogram)) return estimate_features(scan, tile, histogram, totals);
  ScanTile job = scan_job(scan, output_tile, histogram, totals);
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    if (first) list_bins(list, scan, tile, position, histogram);  // its bins are then near at hand
    if (scan.step_begin[position] == scan.step_begin[position + 1]) continue;
    aim(job, scan, tile, position);
    if (estimates_)
      scan.highest[position] = estimate_kernels().estimate(job);
    else
      score_kernels().scan(job);
  }
}

// The highest estimate of each feature, straight from its bins.
void SplitFinder::estimate_features(Scan& scan, const FeatureTile& tile, const std::int32_t* histogram,
                                    const std::int32_t* totals) const {
  const PayloadLayout& layout = payload_.layout;
  BinsTile job{};
  job.terms = scan_job(scan, 0, histogram, totals);
  job.count_channel = layout.count_channel();
  job.weight_channel = layout.weight_channel();
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  job.least_rows = static_cast<std::int32_t>(std::min<std::int64_t>(rules_.min_samples_leaf, kMost));
  job.shared = !diagonal();
  job.shared_unit = payload_.hessian_unit[0];
  job.shared_lambda = rules_.reg_lambda;
  job.least_weight = rules_.min_child_weight;
  float bar = scan.bar;
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    if (!allowed(scan, tile.features[position])) continue;
    const std::uint32_t first = tile.slot_begin[position];
    job.terms.histogram = histogram + first * static_cast<std::size_t>(layout.width);
    job.terms.missing = missing_bin(tile, position, histogram);
    job.n_bins = tile.value_end[position] - first;
    job.bar = bar > kSmallestEstimate ? bar : 0.0f;
    scan.highest[position] = estimate_kernels().highest_estimate(job);
    bar = std::max(bar, scan.highest[position]);
  }
}

// Estimates below this cannot be the best.
float SplitFinder::least_estimate(Scan& scan) const {
  const float highest = std::max(scan.bar, *std::max_element(scan.highest.begin(), scan.highest.end()));
  scan.bar = highest;
  // All terms are positive, so that their sum is as exact as they are; then one addition for each output tile.
  const float error = 1e-5f + 1e-7f * static_cast<float>(payload_.layout.n_tiles);
  return highest > kSmallestEstimate ? highest * (1.0f - error) : 0.0f;
}

// The candidates of features whose highest estimate is not below the least, and their estimates.
void SplitFinder::list_close(Scan& scan, const FeatureTile& tile, float least, const std::int32_t* histogram,
                             const std::int32_t* totals) const {
  StepList list(*this, scan, totals);
  ScanTile job = scan_job(scan, 0, histogram, totals);
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    if (scan.highest[position] < least) {
      scan.step_begin.push_back(scan.n_steps);
      continue;
    }
    list_bins(list, scan, tile, position, histogram);
    aim(job, scan, tile, position);
    estimate_kernels().estimate(job);
  }
}

// The scores of candidates whose estimates leave open whether they are the best. The others are no longer allowed.
// Returns the positions of their features.
std::vector<std::size_t> SplitFinder::score_close(Scan& scan, const FeatureTile& tile, const std::int32_t* totals,
                                                  const Histograms& histograms) const {
  const float least = least_estimate(scan);
  if (lists_late(histograms.first)) list_close(scan, tile, least, histograms.first, totals);
  std::vector<std::size_t> positions;
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    if (scan.highest[position] < least) continue;
    for (std::size_t s = scan.step_begin[position]; s < scan.step_begin[position + 1]; ++s) {
      Step& step = scan.steps[s];
      step.right_allowed = step.right_allowed && scan.estimated[2 * s] >= least;
      step.left_allowed = step.left_allowed && scan.estimated[2 * s + 1] >= least;
      scan.score[2 * s] = scan.score[2 * s + 1] = 0.0;
    }
    if (scan.step_begin[position] < scan.step_begin[position + 1]) positions.push_back(position);
  }
  for (int t = 0; t < payload_.layout.n_tiles; ++t) {
    const std::int32_t* histogram =
        histograms.first == nullptr ? nullptr : histograms.first + static_cast<std::size_t>(t) * histograms.stride;
    ScanTile job = scan_job(scan, t, histogram, totals);
    for (const std::size_t position : positions) {
      aim(job, scan, tile, position);
      score_kernels().scan(job);
    }
  }
  return positions;
}

BestCandidate SplitFinder::best(Scan& scan, const FeatureTile& tile, const std::int32_t* totals,
                                const Histograms& histograms) const {
  if (joint_ != nullptr) score_jointly(scan, tile, totals);
  std::vector<std::size_t> positions;
  if (estimates_) {
    positions = score_close(scan, tile, totals, histograms);
  } else {
    positions.resize(tile.n_features());
    std::iota(positions.begin(), positions.end(), std::size_t{0});
  }
  // Tile by tile, a diagonal Hessian is summed over the outputs.
  const double share = diagonal() && joint_ == nullptr ? 1.0 / payload_.layout.n_outputs : 1.0;
  const bool by_weight = diagonal() || joint_ != nullptr;  // otherwise lighter candidates are not allowed
  BestCandidate best;
  for (const std::size_t position : positions) {
    for (std::size_t s = scan.step_begin[position]; s < scan.step_begin[position + 1]; ++s) {
      const Step& step = scan.steps[s];
      for (const bool missing_left : {false, true}) {
        if (!(missing_left ? step.left_allowed : step.right_allowed)) continue;
        const std::size_t at = 2 * s + (missing_left ? 1 : 0);
        if (!reaches(scan.score[at], best.highest)) continue;  // most do not
        if (by_weight && !heavy_enough(scan.left_weight[at] * share, totals)) continue;
        Candidate candidate;
        candidate.score = scan.score[at];
        candidate.feature = tile.features[position];
        candidate.bin = bin_of(scan, tile, position, s, totals);
        candidate.missing_left = missing_left;
        candidate.missing_seen = scan.missing_seen[position] != 0;
        best.offer(candidate);
      }
    }
  }
  return best;
}

}  // namespace polyleaf
