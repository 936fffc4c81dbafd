// A forest on rows that are bin codes already: where its thresholds are cut points of the table, the way of a row
// follows from its codes, and its leaves are those that its values lead to.
#pragma once

#include <cstddef>

#include "predict/forest_arrays.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

// Adds trees [begin, end) to raw (rows x n_outputs). std::invalid_argument, before anything is added, where a split's
// threshold is no cut point of the table, or it tells other categories apart.
void add_binned(const ForestArrays& forest, const BinnedMatrix& matrix, std::size_t begin, std::size_t end, double* raw,
                std::size_t n_outputs, int n_threads);

}  // namespace polyleaf
