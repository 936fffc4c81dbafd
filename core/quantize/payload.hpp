// What a histogram sums: one vector of integers per row, opaque to everything but the split rules.
//
// Gradients are rounded once a round to a fixed-point grid whose unit is a power of two for each channel, chosen such
// that the sum of magnitudes over all rows fits an int32. Sums are then exact and independent of their order:
// histogram subtraction, "frequent bin = total - rest" and any number of threads give the same bits.
//
// The outputs are cut into tiles, so that the histogram of a tile of features stays in a core's cache. In each output
// tile a row holds [gradients | Hessians, if diagonal | in tile 0: row count, weight if shared], padded to vectors.
// With a full Hessian the tiles are just pieces of [row count | gradients | lower triangle, row by row].
//
// Twenty outputs with a Hessian each (G gradient, H Hessian, n row count, . padding), 24 channels to a tile:
//
//   tile 0    | G0  G1  ... G9  | H0  H1  ... H9  | n | . . . |    row 0
//             | G0  G1  ... G9  | H0  H1  ... H9  | n | . . . |    row 1
//               ...                                                all rows
//   tile 1    | G10 G11 ... G19 | H10 H11 ... H19 | . | . . . |    row 0
//               ...
//              0                 hessian_channel   count_channel  width
//
// Six outputs that share the Hessian of a row (w), 8 channels:
//
//   tile 0    | G0 G1 G2 G3 G4 G5 | n | w |                        row 0
//               ...
//
// Up to four channels, as of one output or a projection to two, are a row of their own size: half a lane.
//
//   tile 0    | G0 G1 | n | w |                                    row 0
//               ...
//
// What a histogram costs is its stores. Where packed sums are asked for and 24 channels would take 96 bytes, sums have
// 20 bits, three of them share 64 (kernels/histogram.hpp), and a row and a bin take one cache line of 64 bytes.
// Rounding is at random then: to the nearest, what is below half a unit would be lost.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "base/shard.hpp"
#include "gradients/full_hessian.hpp"
#include "gradients/gradient_arrays.hpp"
#include "kernels/histogram.hpp"

namespace polyleaf {

enum class HessianKind : std::uint8_t {
  kCount,     // the same for every output and row: the row count is enough
  kShared,    // one number per row: its weight
  kDiagonal,  // one per row and output
  kFull,      // a symmetric matrix per row
};

struct PayloadLayout {
  int n_outputs = 0;
  HessianKind hessian = HessianKind::kCount;
  int n_tiles = 0;
  int outputs_per_tile = 0;
  int width = 0;        // channels of one tile, a multiple of kLane or, of few in all, kFewChannels
  bool packed = false;  // three channels share 64 bits

  static constexpr int kLane = 8;
  static constexpr int kFewChannels = 4;
  static constexpr int kMaxWidth = 32;
  static constexpr int kSlack = 64;  // numbers behind sums, for reads of whole vectors

  int hessian_channel() const { return outputs_per_tile; }
  int count_channel() const {
    if (hessian == HessianKind::kFull) return 0;
    return outputs_per_tile * (hessian == HessianKind::kDiagonal ? 2 : 1);
  }
  int weight_channel() const { return count_channel() + (hessian == HessianKind::kShared ? 1 : 0); }
  int outputs_in(int tile) const {
    const int left = n_outputs - tile * outputs_per_tile;
    return left < outputs_per_tile ? left : outputs_per_tile;
  }
  std::size_t row_size() const { return static_cast<std::size_t>(packed ? kPackedSize : width); }  // in int32
  int sum_bits() const { return packed ? kPackedBits : 31; }  // of the magnitudes of a channel
  std::size_t n_channels() const { return static_cast<std::size_t>(n_tiles) * static_cast<std::size_t>(width); }
};

// Whether sums of so many rows can be packed. Of 20 bits the largest number leaves two to the mean magnitude of a row's
// gradient. Weights need bits of their own.
constexpr std::size_t kMostPackedRows = 262144;
constexpr bool can_pack(std::size_t n_rows, bool weighted) { return n_rows <= kMostPackedRows && !weighted; }

// `pack`: three channels share 64 bits where tiles have 24.
PayloadLayout lay_out_payload(int n_outputs, HessianKind hessian, bool pack);

struct GradientBounds;

struct Payload {
  PayloadLayout layout;
  std::size_t n_rows = 0;
  Buffer<std::int32_t> data;          // [tile][row][row_size]
  std::vector<double> gradient_unit;  // per output: what 1 of the integer channel means
  std::vector<double> hessian_unit;   // per output (a shared Hessian: all equal), or per entry of the triangle

  bool is_cleared = false;          // rows that are not in the tree are zeros
  bool hessian_is_positive = true;  // no entry of a diagonal one is negative

  // Clears the rows that are not among these, which ascend.
  void clear_others(const std::uint32_t* rows, std::size_t n);

  PayloadRows tile(int t) const {
    return {data.data() + static_cast<std::size_t>(t) * n_rows * layout.row_size(), layout.width, layout.packed};
  }
};

// Rows of a node that are looked at one by one, with an int32 for each channel.
class NodeRows {
 public:
  // `rows` are not copied; their vectors are, if asked for, so that they stand in the order of the rows.
  void take(const Payload& payload, const std::uint32_t* rows, std::size_t n_rows, bool copied = false);
  std::size_t size() const { return n_rows_; }
  std::uint32_t row(std::size_t i) const { return rows_[i]; }     // its number in the table
  std::uint32_t place(std::size_t i) const { return place_[i]; }  // among the vectors of a tile
  const std::uint32_t* places() const { return place_; }
  const std::int32_t* tile(int t) const { return data_ + static_cast<std::size_t>(t) * tile_size_; }

 private:
  const std::uint32_t* rows_ = nullptr;
  std::size_t n_rows_ = 0;
  const std::uint32_t* place_ = nullptr;
  const std::int32_t* data_ = nullptr;
  std::size_t tile_size_ = 0;
  std::vector<std::uint32_t> own_places_;  // of copies
  Buffer<std::int32_t> own_data_;          // rows are read as aligned vectors
};

struct QuantizeSettings {
  bool full_hessian = false;
  bool pack = false;  // sums are packed where they can be
  int n_threads = 1;
};

// Throws std::overflow_error when a gradient or Hessian is not finite.
// `bounds` are those of the gradients (quantize/bounds.hpp). `payload` is reused between rounds.
void quantize(const Gradients& gradients, const GradientBounds& bounds, const QuantizeSettings& settings,
              const Shard& shard, Payload& payload);

}  // namespace polyleaf
