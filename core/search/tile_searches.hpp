// Which way the splits of a tree are searched for: the one place that chooses.
#pragma once

#include <memory>

#include "search/category_split.hpp"
#include "search/estimates.hpp"
#include "search/joint_score.hpp"
#include "search/output_terms.hpp"
#include "search/tile_search.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

// A search for each kind of tile.
struct TileSearchPair {
  std::unique_ptr<TileSearch> numeric, categorical;

  TileSearch& of(const FeatureTile& tile) { return tile.categorical ? *categorical : *numeric; }
  void start(const SearchedNode& node) {
    numeric->start(node);
    categorical->start(node);
  }
};

class TileSearches {
 public:
  // `joint` may be null: scores are then sums over outputs.
  TileSearches(const BinnedMatrix& matrix, const OutputTerms& terms, const JointScore* joint)
      : matrix_(matrix), terms_(terms), joint_(joint), estimates_(terms), categories_(matrix, terms) {}
  TileSearches(const TileSearches&) = delete;  // searches refer to it
  TileSearches& operator=(const TileSearches&) = delete;

  // The sums of the root, before any search.
  void set_root(const std::int32_t* totals, const RootMoments& moments) { categories_.set_root(totals, moments); }
  TileSearchPair make() const;
  const EstimateTerms& estimates() const { return estimates_; }

 private:
  std::unique_ptr<TileSearch> make_numeric() const;

  const BinnedMatrix& matrix_;
  const OutputTerms& terms_;
  const JointScore* joint_;
  const EstimateTerms estimates_;
  CategoryTerms categories_;
};

}  // namespace polyleaf
