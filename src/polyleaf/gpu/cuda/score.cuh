// The best split of each node: scores of all candidates in double precision, by the rules of the CPU.
#pragma once

#include "common.cuh"
#include "rules/acceptance.hpp"
#include "rules/pruning.hpp"

namespace polyleaf {

constexpr int kWarps = 8;  // of a block of `scan`: 256 bins
constexpr int kNoBin = 1 << 30;

struct Scan {  // one feature of one node
  const int* histogram;
  const int* total;
  const int* missing;  // its missing bin; read where n_missing > 0
  int n_values;
  int n_rows;
  int n_missing;
  int feature;
  double weight_unit;
};

struct ScanSpace {
  int before[2][kWarps][2][8];  // gradient and Hessian of each warp's bins; of the outputs at hand and those before
  int counts[kWarps];
  int weights[kWarps];
  double highest[kWarps];
  int lowest[kWarps];
};

// Whether the product of two such denominators is positive and within range.
__device__ inline bool is_moderate(double denominator) { return denominator > 1e-100 && denominator < 1e100; }

// An integer as a number, by an addition: conversions take four times as long.
__device__ inline double number_of(int value) {
  return __hiloint2double(0x43300000, value ^ static_cast<int>(0x80000000)) - 4503601774854144.0;  // 2^52 + 2^31
}

// A warp has 32 bins. Its lanes are parts of W: each takes W bins, and of these one output a lane.
template <int W, bool Diagonal, bool Missing>
__device__ void scan_feature(const Scan& s, const Scoring& by, ScanSpace& space, Best* out) {
  const Channels& o = by.channels;
  const double reg_lambda = by.rules.reg_lambda;
  static_assert(W <= 8, "what there is space for");
  constexpr int kParts = 32 / W;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, in_part = lane % W, part = lane / W;
  const int first = warp * 32 + part * W;  // bin of this part
  const int own_bin = warp * 32 + lane;
  const auto at = [&](int bin, int channel) { return s.histogram[static_cast<uint64>(bin) * o.n_channels + channel]; };

  // Rows and shared Hessian up to each bin, one bin a lane.
  int count = own_bin < s.n_values ? at(own_bin, o.count_channel) : 0;
  int weight = o.weight_channel == o.count_channel ? count : own_bin < s.n_values ? at(own_bin, o.weight_channel) : 0;
  const bool empty = count == 0;
  for (int distance = 1; distance < 32; distance <<= 1) {
    const int c = __shfl_up_sync(kAllLanes, count, distance), w = __shfl_up_sync(kAllLanes, weight, distance);
    if (lane >= distance) count += c, weight += w;
  }
  if (lane == 31) space.counts[warp] = count, space.weights[warp] = weight;
  __syncthreads();
  for (int w = 0; w < warp; ++w) count += space.counts[w], weight += space.weights[w];
  const double all_weight = s.total[o.weight_channel] * s.weight_unit;
  const double left_weight = weight * s.weight_unit;
  const double with_weight = Missing ? (weight + s.missing[o.weight_channel]) * s.weight_unit : 0.0;
  double inverse[4] = {0, 0, 0, 0};  // left and right, missing values right; left and right, missing values left
  if (!Diagonal) {
    inverse[0] = score_term(1.0, left_weight + reg_lambda);
    inverse[1] = score_term(1.0, all_weight - left_weight + reg_lambda);
    if (Missing) {
      inverse[2] = score_term(1.0, with_weight + reg_lambda);
      inverse[3] = score_term(1.0, all_weight - with_weight + reg_lambda);
    }
  }

  double sum[W], sum_missing[Missing ? W : 1];
#pragma unroll
  for (int b = 0; b < W; ++b) sum[b] = 0;
#pragma unroll
  for (int b = 0; b < (Missing ? W : 1); ++b) sum_missing[b] = 0;
  for (int base = 0; base < o.n_outputs; base += W) {
    const bool is_output = base + in_part < o.n_outputs;
    const int g = is_output ? base + in_part : 0;
    const int h = Diagonal ? o.hessian_channel + g : 0;
    const double factor = is_output ? by.factor[g] : 0.0, unit = Diagonal ? by.hessian_unit[g] : 0.0;
    const double alpha = by.alpha != nullptr ? by.alpha[g] : 0.0;
    const double all_g = s.total[g], all_h = Diagonal ? s.total[h] * unit : 0.0;
    int bin_g[W], bin_h[Diagonal ? W : 1];
    int own_g = 0, own_h = 0;
#pragma unroll
    for (int b = 0; b < W; ++b) {
      const bool is_bin = first + b < s.n_values;
      own_g += bin_g[b] = is_bin ? at(first + b, g) : 0;
      if (Diagonal) own_h += bin_h[b] = is_bin ? at(first + b, h) : 0;
    }
    // What lies to the left of this part: in its warp, and in the warps before.
    int left_g = 0, left_h = 0, warp_g = own_g, warp_h = own_h;
#pragma unroll
    for (int p = 1; p < kParts; ++p) {
      const int other = (lane + p * W) & 31;
      const int other_g = __shfl_sync(kAllLanes, own_g, other), other_h = __shfl_sync(kAllLanes, own_h, other);
      warp_g += other_g;
      warp_h += other_h;
      if (other < part * W) left_g += other_g, left_h += other_h;
    }
    // A warp may still read what it was given for the outputs before these: hence two places.
    auto& before = space.before[base / W % 2];
    if (part == 0) before[warp][0][in_part] = warp_g, before[warp][1][in_part] = warp_h;
    __syncthreads();
    for (int w = 0; w < warp; ++w) left_g += before[w][0][in_part], left_h += before[w][1][in_part];
    const int missing_g = Missing ? s.missing[g] : 0, missing_h = Missing && Diagonal ? s.missing[h] : 0;
    const auto term = [&](int sum_g, int sum_h, double inverse_left, double inverse_right) {
      const double left_g = number_of(sum_g);
      const double l = soft_threshold(left_g, alpha), r = soft_threshold(all_g - left_g, alpha);
      if (!Diagonal) return factor * (l * l * inverse_left + r * r * inverse_right);
      const double left_h = number_of(sum_h) * unit;
      const double left = left_h + reg_lambda, right = all_h - left_h + reg_lambda;
      if (is_moderate(left) && is_moderate(right)) return factor * score_terms(l, left, r, right);
      return factor * (score_term(l, left) + score_term(r, right));
    };
    const auto of_bin = [&](double value, int b) { return Diagonal ? 0.0 : __shfl_sync(kAllLanes, value, b, W); };
#pragma unroll
    for (int b = 0; b < W; ++b) {
      left_g += bin_g[b];
      if (Diagonal) left_h += bin_h[b];
      sum[b] += term(left_g, left_h, of_bin(inverse[0], b), of_bin(inverse[1], b));
      if (Missing)
        sum_missing[b] += term(left_g + missing_g, left_h + missing_h, of_bin(inverse[2], b), of_bin(inverse[3], b));
    }
  }
  double score = -1, score_missing = -1;  // of the lane's own bin
#pragma unroll
  for (int b = 0; b < W; ++b) {
    const double of_outputs = warp_sum(sum[b], W);
    if (in_part == b) score = of_outputs;
    if (Missing) {
      const double with_missing = warp_sum(sum_missing[b], W);
      if (in_part == b) score_missing = with_missing;
    }
  }

  const bool is_candidate = own_bin < s.n_values && !empty;
  const auto allowed = [&](int n_left, double weight_left) {
    return is_candidate && n_left < s.n_rows && large_enough(n_left, s.n_rows, by.rules.min_samples_leaf) &&
           heavy_enough(weight_left, all_weight, by.rules.min_child_weight);
  };
  const int with_missing = count + s.n_missing;
  if (!allowed(count, left_weight)) score = -1;
  if (!Missing || !allowed(with_missing, with_weight)) score_missing = -1;
  double highest = warp_max(fmax(score, score_missing));
  if (lane == 0) space.highest[warp] = highest;
  __syncthreads();
  for (int w = 0; w < kWarps; ++w) highest = fmax(highest, space.highest[w]);
  // The lowest bin that reaches it, missing values to the right if they may.
  const bool right = score >= 0 && reaches(score, highest);
  const bool left = score_missing >= 0 && reaches(score_missing, highest);
  const uint32 reaching = __ballot_sync(kAllLanes, right || left);
  if (lane == 0) space.lowest[warp] = reaching ? warp * 32 + __ffs(reaching) - 1 : kNoBin;
  __syncthreads();
  int lowest = kNoBin;
  for (int w = 0; w < kWarps; ++w) lowest = min(lowest, space.lowest[w]);
  if (highest < 0) {
    if (threadIdx.x == 0) *out = {-1.0, -1, -1, 0, 0};
  } else if (own_bin == lowest) {
    *out = {right ? score : score_missing, s.feature, lowest, right ? count : with_missing,
            (right ? 0 : kMissingLeft) | (s.n_missing > 0 ? kMissingSeen : 0)};
  }
}

}  // namespace polyleaf

// One block per feature of the slice (x) and node (y). `found` is NaN where no feature is scanned. Three blocks fit a
// multiprocessor: its divisions wait on one another, and only other warps fill the time.
extern "C" __global__ void __launch_bounds__(256, 3)
    scan(const polyleaf::Level* level, polyleaf::HistogramSlice slice, const int* totals, polyleaf::BinnedTable table,
         const uint8* mask, polyleaf::Scoring by, polyleaf::Best* found) {
  using namespace polyleaf;
  __shared__ ScanSpace space;
  const int feature = slice.quads[blockIdx.x / kQuad] * kQuad + blockIdx.x % kQuad, node = blockIdx.y;
  if (slice.first_node + node >= level->n_nodes || feature >= table.n_features) return;
  if (mask != nullptr && mask[feature] == 0) return;
  const int n_channels = slice.n_channels, count_channel = by.channels.count_channel;
  const uint64 which = static_cast<uint64>(node) * slice.n_quads * kQuad + blockIdx.x;
  Scan s;
  s.histogram = slice.histograms + which * slice.n_bins * n_channels;
  s.total = totals + static_cast<uint64>(node) * n_channels;
  s.n_values = table.value_bins[feature];
  s.missing = s.histogram + static_cast<uint64>(s.n_values) * n_channels;
  s.n_rows = s.total[count_channel];
  s.n_missing = table.has_missing[feature] != 0 ? s.missing[count_channel] : 0;
  s.feature = feature;
  s.weight_unit = *by.weight_unit;
  Best* out = found + static_cast<uint64>(node) * table.n_features + feature;
  constexpr int kLanes = POLYLEAF_SCAN_LANES;
  if (by.channels.hessian_channel >= 0)
    s.n_missing > 0 ? scan_feature<kLanes, true, true>(s, by, space, out)
                    : scan_feature<kLanes, true, false>(s, by, space, out);
  else
    s.n_missing > 0 ? scan_feature<kLanes, false, true>(s, by, space, out)
                    : scan_feature<kLanes, false, false>(s, by, space, out);
}

// One block of a warp per node, from the first of a slice on: the best over the features, and what it gains.
extern "C" __global__ void choose_splits(const polyleaf::Level* level, int first_node, const polyleaf::Best* found,
                                         int n_features, const int* totals, polyleaf::Scoring by,
                                         polyleaf::LevelNodes of) {
  using namespace polyleaf;
  const Channels& o = by.channels;
  const int lane = threadIdx.x, position = first_node + blockIdx.x;
  if (position >= level->n_nodes) return;
  const int* total = totals + static_cast<uint64>(blockIdx.x) * o.n_channels;
  double own = 0;
  for (int j = lane; j < o.n_outputs; j += 32) {
    const double hessian = o.hessian_channel >= 0 ? total[o.hessian_channel + j] * by.hessian_unit[j]
                                                  : total[o.weight_channel] * *by.weight_unit;
    const double gradient = soft_threshold(total[j], by.alpha != nullptr ? by.alpha[j] : 0.0);
    own += by.factor[j] * score_term(gradient, hessian + by.rules.reg_lambda);
  }
  own = warp_sum(own);
  const Best* own_found = found + static_cast<uint64>(blockIdx.x) * n_features;
  double highest = -1;
  for (int f = lane; f < n_features; f += 32) highest = fmax(highest, own_found[f].score);
  highest = warp_max(highest);
  int feature = n_features;
  for (int f = lane; f < n_features && feature == n_features; f += 32)
    if (own_found[f].score >= 0 && reaches(own_found[f].score, highest)) feature = f;
  for (int offset = 16; offset > 0; offset >>= 1) feature = min(feature, __shfl_xor_sync(kAllLanes, feature, offset));
  if (lane != 0) return;
  VisitedNode& node = of.nodes[of.node_of[position]];
  node.gain = 0;
  of.n_left[position] = 0;
  if (feature == n_features || !enough_for_two(node.end - node.begin, by.rules.min_samples_leaf)) return;
  const Best best = own_found[feature];
  node.gain = accepted_gain(best.score, own, o.n_outputs, by.rules.min_split_gain);
  if (!(node.gain > 0)) return;
  node.path_minimum = path_minimum(node.path_minimum, node.gain);
  node.score = best.score;
  node.feature = best.feature;
  node.bin = best.bin;
  node.flags = best.flags;
  of.n_left[position] = best.n_left;
}
