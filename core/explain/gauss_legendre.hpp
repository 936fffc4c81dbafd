// Points and weights that integrate polynomials over [0, 1] exactly.
#pragma once

#include <cstddef>
#include <vector>

namespace polyleaf {

struct Quadrature {
  std::vector<double> point;
  std::vector<double> weight;
};

// n points are exact up to degree 2 n - 1.
Quadrature gauss_legendre(std::size_t n);

}  // namespace polyleaf
