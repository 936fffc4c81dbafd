// A hash of what each row of a binned table holds: equal for equal rows, wherever they are.
#pragma once

#include <cstdint>
#include <vector>

#include "table/binned_matrix.hpp"

namespace polyleaf {

// Hangs on the codes of a row alone, not on tiles, threads or the row's number.
std::vector<std::uint64_t> row_hashes(const BinnedMatrix& matrix, int n_threads);

}  // namespace polyleaf
