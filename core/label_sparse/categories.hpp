// The order of categories (category_order.hpp) where gradients are sparse: nothing is as large as categories x outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace polyleaf {

// Sums of each category's rows. The Hessian is the rows' weight, the same for all outputs.
struct SparseCategories {
  std::vector<std::size_t> begin{0};   // categories + 1: where the sums of each begin
  std::vector<std::int32_t> output;    // ascending for each category
  std::vector<std::int32_t> gradient;  // of that output
  std::vector<double> hessian;         // per category
  const double* factor = nullptr;      // per output: what the square of a gradient counts in the score
  std::size_t n_outputs = 0;
  double reg_lambda = 0.0;
};

// Writes the numbers of the categories in their order.
void put_in_order(const SparseCategories& categories, std::vector<std::uint32_t>& order);

}  // namespace polyleaf
