// Rows of a node sorted by the bins of each feature of a tile, some of them at a time: their sums then stay in
// registers from the first row of a bin to the last one, instead of going to the bin and back for each row.
//
//   chunk 0:  feature 0: | rows of bin 0 | rows of bin 1 | ...    feature 1: | rows of bin 0 | ...
//   chunk 1:  ...
//
// Where threads build a histogram together, they sort chunk by chunk, and a part of the rows is some chunks.
//
// What it buys: a sixth to a third of histograms where a row has hundreds of channels and bins have several rows
// (docs/performance.md). Sorting costs as much as adding some 12 vectors of 32 bytes for each row and feature.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "kernels/histogram.hpp"
#include "quantize/payload.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

class SortedRows {
 public:
  // Whether there are ever so many channels that one sort pays.
  static bool has_enough(const PayloadLayout& layout);
  // Whether histograms of so many rows are cheaper if they are sorted first.
  static bool pays(const FeatureTile& tile, const PayloadLayout& layout, std::size_t n_rows);

  using Codes = Buffer<std::uint8_t>;  // of a chunk, feature by feature: work space of a thread

  // Rows in so many parts, to be sorted by the bins of some features of a tile, which are those at `positions`; null:
  // all. `order` has room for rows x features; null: the memory is its own.
  void take(const FeatureTile& tile, const std::vector<std::uint32_t>* positions, const std::uint32_t* rows,
            std::size_t n_rows, std::size_t n_parts, std::uint32_t* order);
  std::size_t n_chunks() const { return n_chunks_; }
  void sort(std::size_t chunk, Codes& codes);
  // Adds the rows of a part, sorted, to the histogram of an output tile.
  void add_to(std::int32_t* histogram, const PayloadRows& payload, std::size_t part) const;

 private:
  std::size_t begin(std::size_t chunk) const { return n_rows_ * chunk / n_chunks_; }
  static void sort(std::size_t n_bins, const std::uint8_t* codes, const std::uint32_t* rows, std::size_t n,
                   std::uint32_t* order, std::uint16_t* ends);

  const FeatureTile* tile_ = nullptr;
  const std::uint32_t* rows_ = nullptr;
  std::size_t n_rows_ = 0, n_chunks_ = 0, n_parts_ = 0;
  std::vector<std::uint32_t> positions_;
  std::vector<std::uint32_t> n_bins_;  // of each of them
  std::size_t n_slots_ = 0;            // of all of them
  std::uint32_t* order_ = nullptr;     // chunk after chunk: features x rows
  Buffer<std::uint32_t> own_order_;
  Buffer<std::uint16_t> ends_;  // chunk after chunk: where the rows of each bin end
};

// A part of the rows; or none, where they are not sorted.
struct SortedPart {
  const SortedRows* rows = nullptr;
  std::size_t part = 0;
};

}  // namespace polyleaf
