// The cells that histograms visit in a tile that skips frequent bins: those outside of each feature's most frequent
// bin, row by row. That bin is the node's total minus the others.
//
//   slots:      | row 0: slot, slot, slot | row 1: slot | row 2: none | row 3: slot, ...
//   row_begin:  0                         3             4             4
//
// Where these are few, they are all that is kept of a tile: a cell that is not listed is in the frequent bin. The slots
// of a row ascend.
//
// What it buys: two thirds of a round on mnist, a quarter on one-hot columns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/buffer.hpp"
#include "kernels/histogram.hpp"

namespace polyleaf {

struct FeatureTile;

// Cells of a tile are counted in 32 bits.
constexpr std::size_t kMostVisited = (std::size_t{1} << 32) - 1;

struct VisitedCells {
  std::vector<std::uint32_t> row_begin;  // rows + 1
  Buffer<std::uint16_t> slots;

  bool empty() const { return row_begin.empty(); }
  TileCells view() const;
  // The code of a feature whose slots are [begin, end) in a row, of which that of its frequent bin is not listed.
  std::uint32_t code(std::size_t row, std::uint32_t begin, std::uint32_t end, std::uint32_t frequent) const {
    const std::uint16_t* last = slots.data() + row_begin[row + 1];
    const std::uint16_t* at = std::lower_bound(slots.data() + row_begin[row], last, begin);
    return (at != last && *at < end ? *at : frequent) - begin;
  }
};

// list_row(row, slots) writes the slots of a row, `most` at most, and returns their number.
using ListRow = std::function<std::size_t(std::size_t row, std::uint16_t* slots)>;
VisitedCells list_rows(std::size_t n_rows, std::size_t most, int n_threads, const ListRow& list_row);

// Those of a tile whose codes are known.
VisitedCells list_visited_cells(const FeatureTile& tile, std::size_t n_rows, int n_threads);

}  // namespace polyleaf
