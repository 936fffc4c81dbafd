// What leaves add to the scores.
#pragma once

#include <cstddef>
#include <cstdint>

namespace polyleaf {

struct LeafKernels {
  // Adds to each row of scores what its leaf says: values (leaves x n) in multiples of `unit`.
  void (*add_leaves)(const std::uint32_t* leaf, const float* values, const double* unit, std::size_t begin,
                     std::size_t end, int n, double* raw);
  // Adds the same values to some rows.
  void (*add_to_rows)(const double* value, int n, const std::uint32_t* rows, std::size_t n_rows, std::size_t stride,
                      double* out);
};

// Of the instruction set in use (kernels/dispatch.hpp).
const LeafKernels& leaf_kernels();

}  // namespace polyleaf
