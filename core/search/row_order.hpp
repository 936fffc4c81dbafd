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

// Up to so many rows for each bin of a feature, listing candidates by rows is the faster way.
constexpr double kFewRowsPerBin = 2.0;

class RowOrder {
 public:
  // Rows and tile must live as long as they are asked for.
  void start(const PayloadLayout& layout, const FeatureTile& tile, const NodeRows& rows);
  void sort(std::size_t position);

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
  void read_cells();

  const FeatureTile* tile_ = nullptr;
  const NodeRows* rows_ = nullptr;
  const std::int32_t* weights_ = nullptr;
  std::size_t width_ = 0;
  std::size_t sorted_ = 0;
  std::vector<std::uint32_t> order_;      // features x rows: places among the vectors of the rows
  std::vector<std::uint32_t> n_missing_;  // per feature
  std::size_t n_groups_ = 0;
  std::vector<std::uint64_t> occupied_;      // a bit per bin
  std::vector<std::uint32_t> group_of_bin_;  // of those bins that hold rows
  std::vector<std::uint32_t> bin_of_group_;
  std::vector<std::uint32_t> group_end_;
  std::vector<std::uint32_t> codes_;       // per row: its bin, then its group
  std::vector<std::uint32_t> cell_codes_;  // features x rows, of a tile that keeps no codes
};

}  // namespace polyleaf
