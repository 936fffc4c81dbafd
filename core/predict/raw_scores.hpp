// Raw scores before the first tree and after the last one, rows x outputs.
#pragma once

#include <cstddef>

namespace polyleaf {

// Every row is `start`.
void start_scores(const double* start, std::size_t n_rows, std::size_t n_outputs, int n_threads, double* raw);
// Each output is multiplied by its unit.
void scale_scores(const double* unit, std::size_t n_rows, std::size_t n_outputs, int n_threads, double* raw);

}  // namespace polyleaf
