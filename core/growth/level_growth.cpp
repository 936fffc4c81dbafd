#include "growth/level_growth.hpp"

#include <limits>

namespace polyleaf {

Order LevelGrowth::run() {
  search_.search_root(nodes_.plant(n_here_));
  std::vector<int> open;
  settle(0, std::numeric_limits<double>::infinity(), open);
  while (!open.empty()) {
    std::vector<Family> families;
    for (const int index : open) {
      if (nodes_.is_hopeless(index)) {
        search_.drop(nodes_.at(index));
        continue;
      }
      families.push_back(nodes_.found_family(index));
      nodes_.part_rows(families.back(), {n_threads_, 0});
    }
    if (families.empty()) break;
    search_.search_level(families);
    open.clear();
    for (const Family& family : families) {
      settle(family.parent.left, family.parent.path_minimum, open);
      settle(family.parent.right, family.parent.path_minimum, open);
    }
  }
  return replay(nodes_.all(), rules_.max_leaves);
}

void LevelGrowth::settle(int index, double parent_minimum, std::vector<int>& open) {
  if (nodes_.settle(index, parent_minimum))
    open.push_back(index);
  else
    search_.drop(nodes_.at(index));
}

}  // namespace polyleaf
