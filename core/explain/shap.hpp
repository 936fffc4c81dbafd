// Shapley values of rows: blocks of rows, each through all trees. What is computed for a row depends on that row alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/matrix_view.hpp"
#include "explain/leaf_paths.hpp"

namespace polyleaf {

// Where results go: rows x n_features x outputs.
struct ShapTarget {
  std::size_t n_features = 0;
  const std::int32_t* column_of_output = nullptr;  // where each output that was asked for stands in a row
  const double* unit = nullptr;                    // of each output that was asked for
};

// x has a column for each of paths.features(): that of number columns[i]. Only cells of these features are written.
template <class Number>
void shap_values(const LeafPaths& paths, const MatrixView& x, const std::int32_t* columns, const ShapTarget& target,
                 Number* out, int n_threads);

// Adds the absolute values, summed over the rows, to sums (n_features x outputs). They are added up in spans of rows,
// whose number depends on the shape of the problem alone.
void add_absolute(const LeafPaths& paths, const MatrixView& x, const std::int32_t* columns, const ShapTarget& target,
                  double* sums, int n_threads);

// Bytes that a thread works on, and those of the spans.
std::size_t bytes_of_block(const LeafPaths& paths);
std::size_t bytes_of_spans(const LeafPaths& paths, std::size_t n_rows);

}  // namespace polyleaf
