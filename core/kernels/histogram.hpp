// Payloads and histograms: rounding of rows, sums over rows, sums over bins.
#pragma once

#include <cstddef>
#include <cstdint>

namespace polyleaf {

// Channels of a packed row, three to a number of 64 bits: channel c takes the field c / 8 of number c % 8. The lower
// two fields have 21 bits, the upper one 22; a field's sign is borrowed from the one above, so that sums and
// differences of packed rows are those of their channels as long as these fit.
constexpr int kPackedWidth = 24;
constexpr int kPackedSize = 16;  // in int32
constexpr int kPackedBits = 20;  // of the sum of magnitudes of a channel

// Rows of an output tile.
struct PayloadRows {
  const std::int32_t* data;
  int width;    // channels
  bool packed;  // else each has an int32
};

// Rounds the rows of one output tile to fixed point (quantize/payload.hpp).
struct QuantizeTile {
  std::int32_t* out;
  int width;
  bool packed;  // rounded at random, then; without weights
  int n_outputs;
  int first_output;
  int all_outputs;
  const float* gradient;
  std::size_t gradient_stride;
  const double* gradient_scale;
  const float* hessian;  // null unless diagonal
  std::size_t hessian_stride;
  const double* hessian_scale;
  int hessian_channel;
  const double* weight;  // may be null
  double weight_scale;
  int count_channel;   // -1: none in this tile
  int shared_channel;  // -1: none in this tile
  double shared_scale;
  const float* curvature;  // of each row; null: 1
  std::size_t row_shift;   // from a row's place to its number, by which packed sums are rounded
};

// One node's rows to be added to the histogram of one tile of features and one tile of outputs.
struct RowsToAdd {
  PayloadRows payload;
  const std::uint32_t* rows;
  std::size_t n_rows;
  std::int32_t* histogram;  // its bins are packed as the rows are
};

// Every cell of a tile of features, as its code.
struct TileCodes {
  const void* codes;
  bool wide;
  std::size_t n_features;
  const std::uint32_t* slot_begin;
  const std::uint32_t* positions;  // the features to visit; null: all
  std::size_t n_positions;
};

// Rows in the order of their bins of one feature (search/sorted_rows.hpp).
struct SortedChunk {
  PayloadRows payload;
  const std::uint32_t* rows;  // in any order
  std::size_t n_rows;
  const std::uint32_t* order;  // bin after bin
  const std::uint16_t* ends;   // where the rows of each bin end
  std::size_t n_bins;
  std::int32_t* histogram;  // of the feature
};

// The cells of a tile that are visited (table/visited_cells.hpp), as slots.
struct TileCells {
  const std::uint32_t* row_begin;
  const std::uint16_t* slots;
  std::size_t lines;  // cache lines that the cells of most rows take
};

// The slot of each of some rows, and how many more rows stand behind them, which may come next.
struct RowSlots {
  const std::uint16_t* slots;
  std::size_t n_behind;
};

// Sums of the combinations of the bins of neighbouring features (table/feature_combinations.hpp), to be made those of
// the features.
struct CombinationTile {
  std::int32_t* sums;  // overwritten
  int width;
  bool packed;
  std::size_t size;                 // combinations of features
  const std::uint32_t* first;       // position of a combination's first feature; one more than there are
  const std::uint32_t* begin;       // its slots among the sums; one more than there are
  const std::uint32_t* slot_begin;  // of the features
  std::int32_t* histogram;          // of the features
};

// Some bins of a histogram, all of which lose the same sums.
struct LosingBins {
  const std::int32_t* sums;
  int width;
  const std::uint32_t* slots;
  const std::uint32_t* positions;  // of those slots that count; null: all
  std::size_t n;
  std::int32_t* histogram;
};

struct HistogramKernels {
  void (*quantize)(const QuantizeTile& tile, std::size_t begin, std::size_t end);
  void (*add_codes)(const RowsToAdd& rows, const TileCodes& codes);
  void (*add_cells)(const RowsToAdd& rows, const TileCells& cells);
  // Adds each of the rows, which may come more than once, to a slot of its own.
  void (*add_each)(const RowsToAdd& rows, const RowSlots& slots);
  // Fetches the vectors of a chunk's rows into the cache, and adds them to the bins of one feature. Not packed.
  void (*fetch_payload)(const SortedChunk& chunk);
  void (*add_sorted)(const SortedChunk& chunk);
  // Adds the vectors of the rows to out.
  void (*sum_payload)(const PayloadRows& payload, const std::uint32_t* rows, std::size_t n_rows, std::int32_t* out);
  void (*sum_combinations)(const CombinationTile& tile);
  // Packed vectors, all or those of some rows, as kPackedWidth integers each.
  void (*unpack)(const std::int32_t* packed, const std::uint32_t* rows, std::size_t n, std::int32_t* out);
  void (*add)(std::int32_t* to, const std::int32_t* what, std::size_t count);
  void (*subtract)(std::int32_t* from, const std::int32_t* what, std::size_t count);
  void (*subtract_from)(const LosingBins& bins);
  // One of `n` bins = totals minus the vectors of the others.
  void (*rest_of_bins)(const std::int32_t* totals, const std::int32_t* bins, std::size_t n, int width,
                       std::int32_t* one);
};

// Of the instruction set in use (kernels/dispatch.hpp).
const HistogramKernels& histogram_kernels();

}  // namespace polyleaf
