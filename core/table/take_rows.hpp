// Some rows of a binned table, as a table of their own with the same bins.
#pragma once

#include <cstdint>

#include "table/binned_matrix.hpp"

namespace polyleaf {

// `rows`: numbers below matrix.n_rows.
BinnedMatrix take_rows(const BinnedMatrix& matrix, const std::uint32_t* rows, std::size_t n_rows, int n_threads);

}  // namespace polyleaf
