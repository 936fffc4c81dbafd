// Split finding on histograms (Algorithm 2 of the paper), one tile of features at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/score.hpp"
#include "quantize/payload.hpp"
#include "rules/scoring.hpp"
#include "search/joint_score.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

// What the rules need to know of the outputs, laid out as the payload is: [output tile][padded outputs].
struct OutputTerms {
  std::size_t padded = 0;      // outputs of a tile, rounded up to whole lanes
  std::vector<double> factor;  // gain weight x gradient unit^2
  std::vector<double> hessian_unit;
  std::vector<double> lambda;
  std::vector<double> alpha;  // in gradient units
  bool moderate = true;       // denominators H + lambda are positive, and their products within range
  // The same in float32, 32 outputs to a tile, factors relative to the largest; empty where that might leave its range.
  std::vector<float> factor32, hessian_unit32, lambda32;

  OutputTerms(const Payload& payload, const Rules& rules, const double* gain_weight, const double* unit);

 private:
  void estimate_terms(const Payload& payload, const Rules& rules);
};

// With more outputs, a thread's histograms of all of them would take too much memory.
constexpr int kMostEstimated = 1024;

class SplitFinder {
 public:
  // `whole` may be null: scores are then sums over outputs.
  SplitFinder(const BinnedMatrix& matrix, const Payload& payload, const Rules& rules, const OutputTerms& terms,
              const JointScore* joint)
      : matrix_(matrix),
        payload_(payload),
        rules_(rules),
        terms_(terms),
        joint_(joint),
        estimates_(joint == nullptr && !terms.factor32.empty() && payload.layout.n_outputs <= kMostEstimated &&
                   (!diagonal() || rules.min_child_weight <= 0)) {}

  // Sum over outputs of T(G)^2 / (H + lambda) of a whole node.
  double node_score(const std::int32_t* totals) const;
  // The feature by whose values the sides of a split are ordered; -1 where the right one has missing values only.
  int ordering_feature(int feature, int bin) const {
    const auto n_bins = static_cast<int>(matrix_.features[static_cast<std::size_t>(feature)].n_value_bins);
    return bin + 1 < n_bins ? feature : -1;
  }
  std::int64_t node_count(const std::int32_t* totals) const { return totals[payload_.layout.count_channel()]; }

  // The candidates of one node in one tile of features. `add` lists them, if the output tile is the first, and sums the
  // scores of one output tile, `best` picks.
  struct Scan {
    const std::uint8_t* feature_mask = nullptr;  // 1 where a feature may be used; null: all. Set before `add`.
    float bar = 0.0f;  // the highest estimate of the node's candidates in other tiles, as far as known
    const ValueBounds* bounds = nullptr;  // of the node. Set before `add`.
    std::size_t n_steps = 0;
    std::vector<Step> steps;  // of these the first n_steps; so with the numbers per step
    std::vector<std::size_t> step_begin;
    std::vector<std::uint8_t> missing_seen;  // per feature: the node has missing values of it
    std::vector<double> score, left_weight, inverse_left, inverse_right;
    std::vector<float> estimated;
    std::vector<float> highest;            // per feature: of the estimates of its allowed candidates
    const NodeRows* rows = nullptr;        // without histogram: those of the node
    std::vector<std::uint32_t> order;      // their places by ascending bin, feature by feature
    std::vector<std::uint32_t> n_missing;  // and how many of them miss the feature
    std::vector<std::uint32_t> bin_end;
    // Where a score needs all outputs at once, `add` only collects the sums to the left of each step and of each
    // feature's missing bin, flat over the output tiles, and `best` scores them.
    std::vector<std::int32_t> left, missing, with_missing;
    JointScore::Scratch scratch;
  };
  void add(Scan& scan, const FeatureTile& tile, int output_tile, const std::int32_t* histogram,
           const std::int32_t* totals) const;
  // Lists candidates straight from the rows of a node that has fewer of them than a feature has bins. `add` then needs
  // no histogram. Not for scores that need all outputs at once.
  void begin_rows(Scan& scan, const FeatureTile& tile, const NodeRows& rows, const std::int32_t* totals) const;
  // `histograms` are those that were added.
  struct Histograms {
    const std::int32_t* first = nullptr;  // of the first output tile; null: without histogram
    std::size_t stride = 0;               // from one output tile to the next
  };
  BestCandidate best(Scan& scan, const FeatureTile& tile, const std::int32_t* totals,
                     const Histograms& histograms) const;
  // Whether scores are estimated first: `best` then needs the histograms of all output tiles.
  bool estimates() const { return estimates_; }
  // Mean over the outputs of a node's Hessian, and whether a left child with that one and its sibling weigh enough.
  double mean_hessian(const std::int32_t* sums) const;
  bool heavy_enough(double left_weight, const std::int32_t* totals) const;

 private:
  bool diagonal() const { return payload_.layout.hessian == HessianKind::kDiagonal; }
  static bool allowed(const Scan& scan, int feature) {
    return scan.feature_mask == nullptr || scan.feature_mask[feature] != 0;
  }
  int bin_of(const Scan& scan, const FeatureTile& tile, std::size_t position, std::size_t step,
             const std::int32_t* totals) const;
  const std::int32_t* missing_bin(const FeatureTile& tile, std::size_t position, const std::int32_t* histogram) const;
  void clear(Scan& scan, const FeatureTile& tile) const;
  struct Counts {  // of the count and the weight channel
    std::int64_t count = 0;
    std::int64_t weight = 0;
  };
  class StepList;
  void list_bins(StepList& list, Scan& scan, const FeatureTile& tile, std::size_t position,
                 const std::int32_t* histogram) const;
  ScanTile scan_job(const Scan& scan, int output_tile, const std::int32_t* histogram, const std::int32_t* totals) const;
  void aim(ScanTile& job, Scan& scan, const FeatureTile& tile, std::size_t position) const;
  // Whether candidates are listed only where estimates come close to the best: with one tile of outputs, each feature's
  // highest estimate is found without a list.
  bool lists_late(const std::int32_t* histogram) const {
    return estimates_ && histogram != nullptr && payload_.layout.n_tiles == 1;
  }
  void estimate_features(Scan& scan, const FeatureTile& tile, const std::int32_t* histogram,
                         const std::int32_t* totals) const;
  void list_close(Scan& scan, const FeatureTile& tile, float least, const std::int32_t* histogram,
                  const std::int32_t* totals) const;
  float least_estimate(Scan& scan) const;
  std::vector<std::size_t> score_close(Scan& scan, const FeatureTile& tile, const std::int32_t* totals,
                                       const Histograms& histograms) const;
  void collect(Scan& scan, const FeatureTile& tile, int output_tile, const std::int32_t* histogram) const;
  void score_jointly(Scan& scan, const FeatureTile& tile, const std::int32_t* totals) const;

  const BinnedMatrix& matrix_;
  const Payload& payload_;
  const Rules& rules_;
  const OutputTerms& terms_;
  const JointScore* joint_;
  const bool estimates_;
};

}  // namespace polyleaf
