#include "kernels/leaf.hpp"

#include "base/row_vector.hpp"

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

void add_leaves(const std::uint32_t* leaf, const float* values, const double* unit, std::size_t begin, std::size_t end,
                int n, double* raw) {
  const auto d = static_cast<std::size_t>(n);
  for (std::size_t row = begin; row < end; ++row) {
    const float* value = values + leaf[row] * d;
    double* to = raw + row * d;
    for (std::size_t j = 0; j < d; ++j) to[j] += unit[j] * static_cast<double>(value[j]);
  }
}

void add_to_rows(const double* value, int n, const std::uint32_t* rows, std::size_t n_rows, std::size_t stride,
                 double* out) {
  for (std::size_t i = 0; i < n_rows; ++i) {
    if (i + kAhead < n_rows) __builtin_prefetch(out + rows[i + kAhead] * stride);
    double* row = out + rows[i] * stride;
    for (int j = 0; j < n; ++j) row[j] += value[j];
  }
}

}  // namespace

extern const LeafKernels kLeafKernels;
const LeafKernels kLeafKernels = {add_leaves, add_to_rows};

}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
