// Histograms from rows (Algorithm 1 of the paper), one tile of features and one tile of outputs at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "base/threads.hpp"
#include "growth/node.hpp"
#include "kernels/histogram.hpp"
#include "quantize/payload.hpp"
#include "search/sorted_rows.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

// Rows, as positions in the array of row numbers.
struct RowRange {
  std::size_t begin, end;

  std::size_t size() const { return end - begin; }
};

inline RowRange rows_of(const Node& node) { return {node.begin, node.end}; }

class HistogramBuilder {
 public:
  // `rows` holds those of every node side by side. `feature_mask`: 1 where the tree may use a feature; null: all.
  HistogramBuilder(const BinnedMatrix& matrix, const Payload& payload, const std::vector<std::uint32_t>& rows,
                   const std::uint8_t* feature_mask);

  // Work space of one thread.
  struct Scratch {
    Buffer<std::int32_t> packed;        // the sums of a tile whose rows are packed
    Buffer<std::int32_t> combinations;  // the sums of a tile's combinations of bins
  };
  // Makes it large enough.
  void fit(Scratch& scratch) const;

  // Whether so few cells are listed in a tile for so many rows that each of them is better taken by itself than a
  // histogram of all bins is made.
  bool has_few_cells(std::size_t tile, std::size_t n_rows) const;
  // Whether the cells of so many rows are visited feature by feature in all tiles, not row by row.
  bool goes_by_features(std::size_t n_rows) const;
  // Whether the tree may use any feature of a tile.
  bool uses(std::size_t tile) const { return all_features_ || !positions_[tile].empty(); }
  // The sums of a node's rows over all channels, with PayloadLayout::kSlack.
  std::vector<std::int32_t> sum_rows(const Node& node, const Team& team) const;
  // The histogram of some rows here, where bins of features that the tree may not use can hold anything. Where a tile
  // skips the most frequent bins of its features, these are complete only after `complete`, which needs the sums of all
  // rows in the histogram, the node's totals.
  // `sorted`: the same rows, when they have been sorted; without any they are taken as they come.
  void build(std::size_t tile, int output_tile, const RowRange& range, const SortedPart& sorted, Scratch& scratch,
             std::int32_t* histogram) const;
  // Takes rows, in so many parts, that are to be sorted for the histograms of all output tiles; false: that does not
  // pay. `order`: memory, as SortedRows takes it.
  bool take_to_sort(std::size_t tile, const RowRange& range, std::size_t n_parts, std::uint32_t* order,
                    SortedRows& sorted) const;
  void complete(std::size_t tile, int output_tile, const Node& node, std::int32_t* histogram) const;
  // Calls body(first number, how many) for the bins of a tile's histogram whose features the tree may use.
  template <class Body>
  void each_used(std::size_t tile, Body&& body) const {
    const auto width = static_cast<std::size_t>(payload_.layout.width);
    for (const UsedRange& range : used_[tile])
      body(range.first_slot * width, (range.last_slot - range.first_slot) * width);
  }
  // Takes the rows of a node out of a complete histogram of a tile that lists cells.
  void take_out(std::size_t tile, int output_tile, const NodeRows& rows, const Node& node,
                std::int32_t* histogram) const;

 private:
  // Neighbouring features of a tile, and their slots.
  struct UsedRange {
    std::size_t begin, end;
    std::size_t first_slot, last_slot;
  };
  // How the cells of a tile are visited.
  enum class Visit : std::uint8_t { kCodes, kCells, kFeatureCells, kCombinations };
  Visit choose(std::size_t at, std::size_t n_rows) const;
  bool combinations_pay(std::size_t at, std::size_t n_rows) const;
  void add_codes(std::size_t at, const RowsToAdd& rows) const;
  void add_feature_cells(std::size_t at, const RowsToAdd& rows) const;
  // Calls body(position) for the features of a tile that the tree may use.
  template <class Body>
  void each_position(std::size_t at, Body&& body) const;

  const BinnedMatrix& matrix_;
  const Payload& payload_;
  const std::vector<std::uint32_t>& rows_;
  const bool all_rows_;  // of the payload are those of the tree, or they are zeros
  const bool all_features_;
  // Per feature tile: the positions of the tree's features, where they are not all.
  std::vector<std::vector<std::uint32_t>> positions_;
  std::vector<std::vector<UsedRange>> used_;  // per feature tile, ascending
};

}  // namespace polyleaf
