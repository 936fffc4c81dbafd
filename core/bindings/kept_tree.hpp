// A grown tree that stays in the core: Python gets its arrays when it asks for them.
#pragma once

#include <cstddef>

#include "growth/grown_tree.hpp"

namespace polyleaf {

struct KeptTree {
  GrownTree tree;
  std::size_t width;      // values of a leaf
  std::size_t n_outputs;  // that they may belong to
  bool has_gains;         // whether the shares of outputs in the gain are known
};

}  // namespace polyleaf
