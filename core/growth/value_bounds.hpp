// What monotone constraints leave open to a node.
#pragma once

#include <vector>

namespace polyleaf {

// Between which values the leaves below a node must lie, output by output, in units of the payload's gradients. Empty:
// anywhere.
struct ValueBounds {
  std::vector<double> low, high;
  // A value that its bounds forced upon a node may score below 0. All scores of a node are told with this added.
  double shift = 0.0;
  double own_score = 0.0;  // of the node as a leaf, so told
};

}  // namespace polyleaf
