// A node of a tree that a device has visited, as it leaves its description to the host.
#pragma once

namespace polyleaf {

struct VisitedNode {
  double gain;          // of the best split; 0: not to be split
  double score;         // of the children of that split
  double path_minimum;  // the smallest gain from the root to here
  unsigned begin;       // its rows, as positions in the array of row numbers
  unsigned end;
  int left;     // the left child, which the right one follows; -1: not split
  int feature;  // of the best split, as in Candidate
  int bin;
  int flags;  // kMissingLeft, kMissingSeen
};

constexpr int kMissingLeft = 1;  // missing values go left
constexpr int kMissingSeen = 2;  // the node had some

}  // namespace polyleaf
