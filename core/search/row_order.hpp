// Search without a histogram: the rows of a small node in the order of their bins, feature by feature.
//
//   order of a feature:  | rows of bin 0 | rows of bin 4 | ... | rows that miss it |
//   groups:                0               1                     n_groups
//
// Bins without rows of the node cost nothing but a bit each.
//
// What it buys: two thirds of a round of deep trees with many bins or outputs; it costs with few of both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/steps.hpp"
#include "quantize/payload.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

// Up to so many rows for each bin of a feature, listing candidates by rows is the faster way. Where candidates are
// bounded first, and bins take twice the room because outputs have Hessians of their own, more rows than that are few.
constexpr double kFewRowsPerBin = 2.0, kFewRowsPerWideBin = 3.0;

class RowOrder {
 public:
  // Rows and tile must live as long as they are asked for. Features that have fewer than `least` rows outside of their
  // most frequent bin are not to be sorted.
  void start(const PayloadLayout& layout, const FeatureTile& tile, const NodeRows& rows, std::int64_t least);
  void sort(std::size_t position);
  // Whether so many rows are outside of a feature's most frequent bin, as far as that is known: a split that leaves as
  // many on both sides needs them.
  bool has_outside(std::size_t position, std::int64_t least) const {
    return tile_->keeps_codes || n_listed_[position] >= least;
  }
  // Whether there is such a feature.
  bool has_any_outside(std::int64_t least) const { return tile_->keeps_codes || most_listed_ >= least; }

  // Of the feature sorted last: the bins of values that hold rows, ascending, where the rows of each end, and the
  // weights of some places.
  std::size_t n_groups() const { return n_groups_; }
  std::uint32_t bin(std::size_t group) const { return bin_of_group_[group]; }
  std::uint32_t end(std::size_t group) const { return group_end_[group]; }
  std::uint32_t n_values() const { return n_rows() - n_missing_[sorted_]; }
  std::uint32_t n_rows() const { return static_cast<std::uint32_t>(rows_->size()); }
  std::int64_t weight(std::uint32_t begin, std::uint32_t end) const;

  // Where kernels find the sums of a feature's steps.
  StepSums sums(std::size_t position, int output_tile) const;

 private:
  template <class Body>
  void with_codes(std::size_t position, Body&& body) const;
  void count_codes(std::size_t position, std::size_t n_bins);
  void find_groups(std::size_t n_bins);
  std::size_t count_cells(std::int64_t least);
  void read_cells(std::int64_t least, std::size_t n_sorted);
  // Where a feature begins in arrays of features x rows.
  std::size_t part(std::size_t position) const {
    return (tile_->keeps_codes ? position : part_[position]) * rows_->size();
  }

  const FeatureTile* tile_ = nullptr;
  const NodeRows* rows_ = nullptr;
  const std::int32_t* weights_ = nullptr;
  std::size_t width_ = 0;
  std::size_t sorted_ = 0;
  std::vector<std::uint32_t> order_;      // features x rows: places among the vectors of the rows
  std::vector<std::uint32_t> n_missing_;  // per feature
  std::size_t n_groups_ = 0;
  std::vector<std::uint32_t> count_;     // per bin: rows, then where the next of them belongs; else 0
  std::vector<std::uint64_t> occupied_;  // a bit per bin
  std::vector<std::uint32_t> bin_of_group_;
  std::vector<std::uint32_t> group_end_;
  std::vector<std::uint32_t> codes_;       // per row: its bin
  std::vector<std::uint32_t> cell_codes_;  // features x rows, of a tile that keeps no codes
  std::vector<std::uint32_t> part_;        // of such a tile: the number of a feature among those that are sorted
  std::vector<std::int32_t> n_listed_;     // per feature of such a tile: cells of the rows
  std::int32_t most_listed_ = 0;
};

}  // namespace polyleaf
