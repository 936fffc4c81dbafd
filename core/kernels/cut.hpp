// The search for bins: only comparisons, so that every instruction set gives the same bins.
#pragma once

#include <cstddef>
#include <cstdint>

namespace polyleaf {

constexpr std::size_t kCutLine = 16;  // cuts compared with a value at once: a cache line of float32

// The cut points of one column as CutSearch arranges them.
template <class Real>
struct CutLines {
  const Real* lines;  // the cuts in lines, padded with infinity; on a cache-line boundary
  const Real* lasts;  // the last cut of each line but the last; padded to a line where there are fewer
  std::size_t n_cuts;
  std::size_t n_lines;  // more than n_cuts / kCutLine; up to kCutLine of them, there is one more behind, for NaN
};

struct CutKernels {
  // Writes the number of cuts below each value; n_cuts + 1 for NaN.
  void (*find_float)(const CutLines<float>& cuts, const float* values, std::size_t count, std::uint16_t* bins);
  void (*find_double)(const CutLines<double>& cuts, const double* values, std::size_t count, std::uint16_t* bins);
};

// Of the instruction set that kernels() (kernels.hpp) has chosen.
const CutKernels& cut_kernels();

}  // namespace polyleaf
