// Finds the bins of many values of one column at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/buffer.hpp"

namespace polyleaf {

// The cut points of a column, arranged for values of type Real (float or double). The bin of a value is the number of
// cuts below it, compared as float64; NaN has the code after the last bin. At most 65,534 cuts.
template <class Real>
class CutSearch {
 public:
  CutSearch() = default;
  explicit CutSearch(const std::vector<double>& cuts) { take(cuts); }

  // Those of another column, in the same memory.
  void take(const std::vector<double>& cuts);

  // Writes the bins of `count` values.
  void find(const Real* values, std::size_t count, std::uint16_t* bins) const;

 private:
  Buffer<Real> lines_;  // as in CutLines (kernels/cut.hpp)
  Buffer<Real> lasts_;
  std::size_t n_cuts_ = 0;
  std::size_t n_lines_ = 0;
};

}  // namespace polyleaf
