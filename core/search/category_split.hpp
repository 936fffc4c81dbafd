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
#include "search/output_terms.hpp"
#include "search/tile_search.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

// What the rules for categories need to know of a tree's rows.
struct RootMoments {
  double weight = 0.0;
  std::vector<double> squared_gradient;  // per output, weighted
};
RootMoments root_moments(const Gradients& gradients, const std::vector<std::uint32_t>& rows, const Shard& shard,
                         int n_threads);

// What a tree's rounded gradients and rules say of each output where categories are put in order.
struct CategoryTerms {
  CategoryTerms(const BinnedMatrix& matrix, const OutputTerms& terms);

  // The sums of the root, before any search.
  void set_root(const std::int32_t* totals, const RootMoments& moments);

  const OutputTerms& outputs;
  // Per output: where its sums stand, what they mean, and its part in the metric of the score.
  std::vector<std::size_t> gradient_channel, hessian_channel;
  std::vector<double> hessian_unit, factor, smoothing;
  CategoryNoise noise;
};

class CategoryFinder : public TileSearch {
 public:
  // `joint` may be null: scores are then sums over outputs.
  CategoryFinder(const BinnedMatrix& matrix, const CategoryTerms& terms, const JointScore* joint)
      : matrix_(matrix), terms_(terms), outputs_(terms.outputs), joint_(joint) {}

  void start(const SearchedNode& node) override { node_ = node; }
  void add(const FeatureTile& tile, int output_tile, const std::int32_t* histogram) override;
  // The best candidate's `bin` is its place among those of the feature.
  FoundSplit best(const FeatureTile& tile, const TileHistograms& histograms) override;
  FoundSplit search_rows(const FeatureTile& tile, const NodeRows& rows) override;

 private:
  struct Vectors;
  bool allowed(const FeatureTile& tile, std::size_t position) const { return node_.allows(tile.features[position]); }
  const FeatureBins& bins_of(const FeatureTile& tile, std::size_t position) const {
    return matrix_.features[static_cast<std::size_t>(tile.features[position])];
  }
  void list(const FeatureTile& tile, const std::int32_t* histogram);
  void list_rows(const FeatureTile& tile, const NodeRows& rows);
  void reserve(const FeatureTile& tile);
  void put_in_order(std::size_t first, std::size_t n);
  BestCandidate best_of_feature(const FeatureTile& tile, std::size_t position, double enough);
  double score(const std::int32_t* left, double enough);

  const BinnedMatrix& matrix_;
  const CategoryTerms& terms_;
  const OutputTerms& outputs_;
  const JointScore* joint_;
  SearchedNode node_;
  // The categories of the node in one tile of features.
  std::vector<std::size_t> begin_;     // per feature of the tile: where its categories begin; one more
  std::vector<std::uint32_t> bins_;    // ascending for each feature
  std::vector<std::int32_t> sums_;     // of each category, flat over the output tiles
  std::vector<std::int32_t> missing_;  // the same of each feature's missing bin
  // Work space.
  std::vector<std::uint32_t> index_;
  std::vector<std::int32_t> all_;  // sums of all categories of a feature
  std::vector<double> vectors_, values_, projection_, hessian_;
  std::vector<std::uint32_t> order_;
  std::vector<std::int32_t> left_, with_missing_;
  JointScore::Scratch scratch_;
};

}  // namespace polyleaf
