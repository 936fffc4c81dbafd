#include "search/tile_searches.hpp"

#include "search/joint_finder.hpp"
#include "search/late_list.hpp"
#include "search/split_finder.hpp"

namespace polyleaf {

TileSearchPair TileSearches::make() const {
  return {make_numeric(), std::make_unique<CategoryFinder>(matrix_, categories_, joint_)};
}

std::unique_ptr<TileSearch> TileSearches::make_numeric() const {
  if (joint_ != nullptr) return std::make_unique<JointFinder>(matrix_, terms_, *joint_);
  if (!estimates_.usable()) return std::make_unique<SplitFinder>(terms_);
  if (terms_.layout().n_tiles == 1) return std::make_unique<LateListingFinder>(terms_, estimates_);
  return std::make_unique<EstimatingFinder>(terms_, estimates_);
}

}  // namespace polyleaf
