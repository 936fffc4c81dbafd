#include "payload.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "kernels.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kBlockRows = 2048;

int round_up(int value, int step) { return (value + step - 1) / step * step; }

// The largest power of two u such that magnitudes summing to `total` become integers summing to at most `limit`.
double fixed_point_unit(double total, double limit) {
  if (total <= 0) return 1.0;
  const int exponent = std::ilogb(limit / total);
  return std::ldexp(1.0, -std::min(std::max(exponent, -1000), 1000));
}

// The power of two that weights are multiples of, such that they become integers of moderate size; where there is none,
// one that brings their mean close to 1. Only the ratios of weights matter to it.
double weight_grid(const double* weight, std::size_t n, double total) {
  int lowest = std::numeric_limits<int>::max();  // exponent of the lowest bit set in any weight
  for (std::size_t row = 0; row < n; ++row) {
    int exponent;
    const auto mantissa = static_cast<std::int64_t>(std::ldexp(std::frexp(weight[row], &exponent), 53));
    if (mantissa == 0) continue;
    const std::int64_t bit = mantissa & -mantissa;
    lowest = std::min(lowest, exponent - 53 + std::ilogb(static_cast<double>(bit)));
  }
  const double unit = std::ldexp(1.0, lowest);
  return total / unit <= 0x1p29 ? unit : std::ldexp(1.0, std::ilogb(total / static_cast<double>(n)));
}

}  // namespace

PayloadLayout lay_out_payload(int n_outputs, HessianKind hessian) {
  const int per_output = hessian == HessianKind::kDiagonal ? 2 : 1;
  const int extra = hessian == HessianKind::kShared ? 2 : 1;
  PayloadLayout best;  // the fewest channels, then the fewest tiles
  for (int width = PayloadLayout::kMaxWidth; width >= PayloadLayout::kLane; width -= PayloadLayout::kLane) {
    const int most_outputs = (width - extra) / per_output;
    PayloadLayout layout;
    layout.n_outputs = n_outputs;
    layout.hessian = hessian;
    layout.n_tiles = (n_outputs + most_outputs - 1) / most_outputs;
    layout.outputs_per_tile = (n_outputs + layout.n_tiles - 1) / layout.n_tiles;
    layout.n_tiles = (n_outputs + layout.outputs_per_tile - 1) / layout.outputs_per_tile;  // none empty
    layout.width = round_up(layout.outputs_per_tile * per_output + extra, PayloadLayout::kLane);
    if (best.n_tiles == 0 || layout.n_channels() < best.n_channels()) best = layout;
  }
  return best;
}

void quantize(const Gradients& in, int n_threads, Payload& payload) {
  const HessianKind kind = in.hessian != nullptr  ? HessianKind::kDiagonal
                           : in.weight != nullptr ? HessianKind::kShared
                                                  : HessianKind::kCount;
  const std::size_t n = in.n_rows;
  const auto d = static_cast<std::size_t>(in.n_outputs);
  payload.layout = lay_out_payload(in.n_outputs, kind);
  payload.n_rows = n;
  const std::size_t size = n * payload.layout.n_channels();
  if (payload.data.size() != size) payload.data = Buffer<std::int32_t>(size);

  // Weighted magnitudes per output, summed in an order that does not depend on the threads.
  const std::size_t n_blocks = (n + kBlockRows - 1) / kBlockRows;
  const Kernels& kernel = kernels();
  std::vector<double> sums(n_blocks * 2 * d, 0.0);
  parallel_for(n_threads, n_blocks, [&](std::size_t block, int) {
    const std::size_t begin = block * kBlockRows;
    const std::size_t end = std::min(n, begin + kBlockRows);
    double* out = sums.data() + block * 2 * d;
    kernel.sum_magnitudes(in.gradient, in.gradient_stride, in.weight, begin, end, in.n_outputs, out);
    if (kind == HessianKind::kDiagonal)
      kernel.sum_magnitudes(in.hessian, in.hessian_stride, in.weight, begin, end, in.n_outputs, out + d);
  });
  std::vector<double> total(2 * d, 0.0);
  for (std::size_t block = 0; block < n_blocks; ++block)
    for (std::size_t c = 0; c < 2 * d; ++c) total[c] += sums[block * 2 * d + c];
  for (const double t : total)
    if (!std::isfinite(t)) throw std::overflow_error("the gradients are not finite");

  double total_weight = 0.0;
  if (in.weight != nullptr)
    for (std::size_t row = 0; row < n; ++row) total_weight += in.weight[row];
  // A row is rounded before its weight is applied, so that weight 2 equals the row twice.
  const double weight_unit = in.weight != nullptr ? weight_grid(in.weight, n, total_weight) : 1.0;
  // Rounding moves each row by at most a half, before and after its weight is applied.
  const double slack = 0.5 * static_cast<double>(n) + 0.5 * total_weight / weight_unit + 1.0;
  const double limit = 2147483647.0 - slack;
  payload.gradient_unit.assign(d, 1.0);
  payload.hessian_unit.assign(d, 1.0);
  std::vector<double> gradient_scale(d), hessian_scale(d);
  for (std::size_t j = 0; j < d; ++j) {
    payload.gradient_unit[j] = fixed_point_unit(total[j], limit);
    gradient_scale[j] = weight_unit / payload.gradient_unit[j];
    if (kind == HessianKind::kDiagonal) {
      payload.hessian_unit[j] = fixed_point_unit(total[d + j], limit);
      hessian_scale[j] = weight_unit / payload.hessian_unit[j];
    }
  }
  double shared_scale = 1.0;
  if (kind == HessianKind::kShared) {
    const double unit = fixed_point_unit(total_weight, limit);
    payload.hessian_unit.assign(d, unit);
    shared_scale = weight_unit / unit;
  }

  const PayloadLayout& layout = payload.layout;
  parallel_for(n_threads, n_blocks, [&](std::size_t block, int) {
    const std::size_t begin = block * kBlockRows;
    const std::size_t end = std::min(n, begin + kBlockRows);
    for (int t = 0; t < layout.n_tiles; ++t) {
      const int first = t * layout.outputs_per_tile;
      QuantizeTile tile;
      tile.out = payload.data.data() + static_cast<std::size_t>(t) * n * static_cast<std::size_t>(layout.width);
      tile.width = layout.width;
      tile.n_outputs = layout.outputs_in(t);
      tile.gradient = in.gradient + first;
      tile.gradient_stride = in.gradient_stride;
      tile.gradient_scale = gradient_scale.data() + first;
      tile.hessian = kind == HessianKind::kDiagonal ? in.hessian + first : nullptr;
      tile.hessian_stride = in.hessian_stride;
      tile.hessian_scale = hessian_scale.data() + first;
      tile.hessian_channel = layout.hessian_channel();
      tile.weight = in.weight;
      tile.weight_scale = 1.0 / weight_unit;
      tile.count_channel = t == 0 ? layout.count_channel() : -1;
      tile.shared_channel = t == 0 && kind == HessianKind::kShared ? layout.weight_channel() : -1;
      tile.shared_scale = shared_scale;
      kernel.quantize(tile, begin, end);
    }
  });
}

}  // namespace polyleaf
