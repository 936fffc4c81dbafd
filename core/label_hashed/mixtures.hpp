// Gradients of sparse labels, mixed: what splits are found on where labels are hashed.
//
// The labels are hashed into a few groups, anew for each tree, and a row's mixture of a group is the sum of the
// gradients of its labels with signs of chance:
//
//   cells of a row      label 3   label 7   label 8   label 12
//   group, coefficient   1, +c     0, -c     1, -c     0, +c
//                          |         \_________|_________|_______  mixture 0
//                          \___________________|_________________  mixture 1
//
// The expected square of a sum of mixtures over rows is the sum of squares over all labels, which is what a split is
// scored by. A row's labels are read once, and nothing is as large as rows x labels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "label_sparse/labels.hpp"

namespace polyleaf {

struct LabelHash {
  std::size_t n_groups = 0;
  const std::int32_t* group = nullptr;  // per label
  const double* coefficient = nullptr;  // per label, with its sign
};

// Writes the mixtures of each row, rows x groups, at the present scores.
void mix_gradients(const SparseLabels& labels, const LabelHash& hash, float* mixtures, int n_threads);

}  // namespace polyleaf
