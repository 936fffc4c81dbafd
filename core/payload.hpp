// What a histogram sums: one vector of integers per row, opaque to everything but the split rules.
//
// Gradients are rounded once a round to a fixed-point grid whose unit is a power of two for each channel, chosen such
// that the sum of magnitudes over all rows fits an int32. Sums are then exact and independent of their order:
// histogram subtraction, "frequent bin = total - rest" and any number of threads give the same bits.
//
// The outputs are cut into tiles, so that the histogram of a tile of features stays in a core's cache. In each output
// tile a row holds [gradients | Hessians, if diagonal | in tile 0: row count, weight if shared], padded to vectors.
// With a full Hessian the tiles are just pieces of [row count | gradients | lower triangle, row by row].
#pragma once

#include <cstdint>
#include <vector>

#include "buffer.hpp"
#include "kernels.hpp"

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
  int width = 0;  // channels of one tile, a multiple of kLane

  static constexpr int kLane = 8;
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
  std::size_t n_channels() const { return static_cast<std::size_t>(n_tiles) * static_cast<std::size_t>(width); }
};

PayloadLayout lay_out_payload(int n_outputs, HessianKind hessian);

// Entries of the lower triangle of a symmetric matrix.
constexpr std::size_t triangle(std::size_t n) { return n * (n + 1) / 2; }

// Gradients of the loss, unweighted. Rows are `stride` floats apart.
struct Gradients {
  const float* gradient = nullptr;
  std::size_t gradient_stride = 0;
  const float* hessian = nullptr;  // null: that of the row, the same for every output
  std::size_t hessian_stride = 0;
  Term hessian_rule = Term::kItself;    // without `hessian`: the Hessian is this function of the gradient, if one
  const float* curvature = nullptr;     // per row; null: 1
  const double* weight = nullptr;       // null: 1 for every row
  const std::int32_t* label = nullptr;  // classes, where the full Hessian of the softmax is wanted
  std::size_t n_rows = 0;
  int n_outputs = 0;
};

struct Payload {
  PayloadLayout layout;
  std::size_t n_rows = 0;
  Buffer<std::int32_t> data;          // [tile][row][width]
  std::vector<double> gradient_unit;  // per output: what 1 of the integer channel means
  std::vector<double> hessian_unit;   // per output (a shared Hessian: all equal), or per entry of the triangle

  bool hessian_is_positive = true;  // no entry of a diagonal one is negative

  const std::int32_t* tile(int t) const {
    return data.data() + static_cast<std::size_t>(t) * n_rows * static_cast<std::size_t>(layout.width);
  }
};

// Throws std::overflow_error when a gradient or Hessian is not finite.
// `payload` is reused between rounds.
// With `full` the payload holds full Hessians.
void quantize(const Gradients& gradients, bool full, int n_threads, Payload& payload);

}  // namespace polyleaf
