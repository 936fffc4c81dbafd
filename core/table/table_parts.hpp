// A binned table from its parts, which may come from a stranger's file: nothing of them is believed.
#pragma once

#include <cstdint>
#include <vector>

#include "table/binned_matrix.hpp"

namespace polyleaf {

// What a tile is made of.
struct TilePart {
  std::vector<std::int32_t> features;        // ascending
  std::vector<std::uint32_t> frequent_code;  // of each
  bool skips_frequent = false;
  const void* codes = nullptr;  // rows x features, row by row; need not be aligned
  std::size_t n_rows = 0;
  std::size_t n_columns = 0;
  bool wide = false;  // the codes have 16 bits
};

// std::invalid_argument where these are not the cut points, or the categories, of columns.
void check_columns(const std::vector<ColumnCuts>& columns);

// The table that has these tiles. Codes are copied, then checked; the cells that histograms visit are listed anew.
// std::invalid_argument where parts do not fit one another, naming the one.
BinnedMatrix put_together(std::size_t n_rows, std::vector<ColumnCuts> columns, const std::vector<TilePart>& tiles,
                          int n_threads);

}  // namespace polyleaf
