#include "search/tile_searches.hpp"

#include "search/joint_finder.hpp"
#include "search/late_list.hpp"
#include "search/sparse_finder.hpp"
#include "search/split_finder.hpp"

namespace polyleaf {
namespace {

// With more outputs, a thread's histograms of all of them would take too much memory.
constexpr int kMostEstimated = 1024;

}  // namespace

TileSearchPair TileSearches::make() const {
  return {make_numeric(), std::make_unique<CategoryFinder>(matrix_, categories_, joint_)};
}

std::unique_ptr<TileSearch> TileSearches::make_numeric() const {
  if (joint_ != nullptr) {
    if (joint_->sparse_leaves() != nullptr && estimates_.usable())
      return std::make_unique<SparseFinder>(terms_, estimates_, *joint_);
    return std::make_unique<JointFinder>(matrix_, terms_, *joint_);
  }
  if (!estimates_.usable() || terms_.layout().n_outputs > kMostEstimated) return std::make_unique<SplitFinder>(terms_);
  if (terms_.layout().n_tiles == 1) return std::make_unique<LateListingFinder>(terms_, estimates_);
  return std::make_unique<EstimatingFinder>(terms_, estimates_);
}

}  // namespace polyleaf
