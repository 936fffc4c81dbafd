// Splits of a node by sets of categories, one tile of categorical features at a time.
//
// Only the categories that have rows in the node matter. Their sums are copied out of the histograms (or taken from the
// rows of a small node), put in order (category_order.hpp), and the candidates are the beginnings of that order; of a
// feature with few categories, each against the rest.
#pragma once

#include <cstdint>
#include <vector>

#include "growth/category_partition.hpp"
#include "quantize/payload.hpp"
#include "rules/scoring.hpp"
#include "search/category_order.hpp"
#include "search/joint_score.hpp"
#include "search/split.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

// What the rules for categories need to know of a tree's rows.
struct RootMoments {
  double weight = 0.0;
  std::vector<double> squared_gradient;  // per output, weighted
};
RootMoments root_moments(const Gradients& gradients, const std::vector<std::uint32_t>& rows, int n_threads);

class CategoryFinder {
 public:
  // `whole` may be null, as in SplitFinder.
  CategoryFinder(const BinnedMatrix& matrix, const Payload& payload, const Rules& rules, const OutputTerms& terms,
                 const SplitFinder& finder, const JointScore* joint);

  // The sums of the root, before any search.
  void set_root(const std::int32_t* totals, const RootMoments& moments);

  // Work space of a thread, with the categories of one node in one tile of features.
  struct Scan {
    const std::uint8_t* feature_mask = nullptr;  // as in SplitFinder::Scan
    std::vector<std::size_t> begin;              // per feature of the tile: where its categories begin; one more
    std::vector<std::uint32_t> bins;             // ascending for each feature
    std::vector<std::int32_t> sums;              // of each category, flat over the output tiles
    std::vector<std::int32_t> missing;           // the same of each feature's missing bin
    std::vector<std::uint32_t> index;
    std::vector<std::int32_t> all;  // sums of all categories of a feature
    std::vector<double> vectors, values, projection, hessian;
    std::vector<std::uint32_t> order;
    std::vector<std::int32_t> left, with_missing;
    JointScore::Scratch scratch;
  };
  // Takes the sums of one output tile from its histogram; the first tile comes first.
  void add(Scan& scan, const FeatureTile& tile, int output_tile, const std::int32_t* histogram) const;
  // The same of all output tiles from the rows of a node.
  void add_rows(Scan& scan, const FeatureTile& tile, const NodeRows& rows) const;
  // The best candidate, whose `bin` is its place among those of the feature, and its sides.
  BestCandidate best(Scan& scan, const FeatureTile& tile, const std::int32_t* totals,
                     CategoryPartition& partition) const;

 private:
  struct Vectors;
  bool allowed(const Scan& scan, const FeatureTile& tile, std::size_t position) const {
    return scan.feature_mask == nullptr || scan.feature_mask[tile.features[position]] != 0;
  }
  const FeatureBins& bins_of(const FeatureTile& tile, std::size_t position) const {
    return matrix_.features[static_cast<std::size_t>(tile.features[position])];
  }
  void list(Scan& scan, const FeatureTile& tile, const std::int32_t* histogram) const;
  void reserve(Scan& scan, const FeatureTile& tile) const;
  void put_in_order(Scan& scan, std::size_t first, std::size_t n) const;
  BestCandidate best_of_feature(Scan& scan, const FeatureTile& tile, std::size_t position, const std::int32_t* totals,
                                double enough) const;
  double score(Scan& scan, const std::int32_t* left, const std::int32_t* totals, double enough) const;

  const BinnedMatrix& matrix_;
  const Payload& payload_;
  const Rules& rules_;
  const OutputTerms& terms_;
  const SplitFinder& finder_;
  const JointScore* joint_;
  // Per output: where its sums stand, what they mean, and its part in the metric of the score.
  std::vector<std::size_t> gradient_channel_, hessian_channel_;
  std::vector<double> hessian_unit_, factor_, smoothing_;
  CategoryNoise noise_;
};

}  // namespace polyleaf
