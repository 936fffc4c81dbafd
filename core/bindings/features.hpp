// Which features a tree may use, as Python says it.
#pragma once

#include "bindings/arrays.hpp"
#include "growth/feature_sample.hpp"

namespace polyleaf {

// Features are checked; they stand in groups that `begin` tells apart.
inline InteractionGroups groups_of(const std::optional<Vector<std::int64_t>>& begin,
                                   const std::optional<Vector<std::int32_t>>& feature, const BinnedMatrix& matrix) {
  if (!begin || !feature) return {};
  const std::size_t n_groups = begin->shape(0) > 0 ? begin->shape(0) - 1 : 0;
  expect(
      n_groups > 0 && begin->data()[0] == 0 && begin->data()[n_groups] == static_cast<std::int64_t>(feature->shape(0)),
      "the groups do not fit their features");
  for (std::size_t g = 0; g < n_groups; ++g) expect(begin->data()[g] <= begin->data()[g + 1], "groups must ascend");
  for (std::size_t i = 0; i < feature->shape(0); ++i)
    expect(feature->data()[i] >= 0 && static_cast<std::size_t>(feature->data()[i]) < matrix.features.size(),
           "a feature of a group is out of range");
  return {n_groups, begin->data(), feature->data()};
}

}  // namespace polyleaf
