#include "quantize/payload.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "base/order_free.hpp"
#include "base/threads.hpp"
#include "kernels/histogram.hpp"
#include "kernels/sum.hpp"
#include "quantize/bounds.hpp"
#include "quantize/fixed_point.hpp"
#include "rules/grid.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kBlockRows = 2048;

int round_up(int value, int step) { return (value + step - 1) / step * step; }

}  // namespace

PayloadLayout lay_out_payload(int n_outputs, HessianKind hessian, bool pack) {
  if (hessian == HessianKind::kFull) {
    const auto n_channels =
        static_cast<int>(1 + static_cast<std::size_t>(n_outputs) + triangle(static_cast<std::size_t>(n_outputs)));
    PayloadLayout layout;
    layout.n_outputs = n_outputs;
    layout.hessian = hessian;
    layout.n_tiles = (n_channels + PayloadLayout::kMaxWidth - 1) / PayloadLayout::kMaxWidth;
    layout.width = round_up((n_channels + layout.n_tiles - 1) / layout.n_tiles, PayloadLayout::kLane);
    return layout;
  }
  const int per_output = hessian == HessianKind::kDiagonal ? 2 : 1;
  const int extra = hessian == HessianKind::kShared ? 2 : 1;
  // The smallest row, then the fewest tiles. Where packed tiles of 24 are not the fewest channels, the scores of more
  // tiles cost what the smaller row saves if outputs have Hessians of their own: 11 outputs are scored as 16.
  const auto size = [&](const PayloadLayout& layout) {
    if (hessian == HessianKind::kDiagonal) return layout.n_channels();
    return static_cast<std::size_t>(layout.n_tiles) * layout.row_size();
  };
  PayloadLayout best;
  for (int width = PayloadLayout::kMaxWidth; width >= PayloadLayout::kLane; width -= PayloadLayout::kLane) {
    const int most_outputs = (width - extra) / per_output;
    PayloadLayout layout;
    layout.n_outputs = n_outputs;
    layout.hessian = hessian;
    layout.n_tiles = (n_outputs + most_outputs - 1) / most_outputs;
    layout.outputs_per_tile = (n_outputs + layout.n_tiles - 1) / layout.n_tiles;
    layout.n_tiles = (n_outputs + layout.outputs_per_tile - 1) / layout.outputs_per_tile;  // none empty
    layout.width = round_up(layout.outputs_per_tile * per_output + extra, PayloadLayout::kLane);
    layout.packed = pack && layout.width == kPackedWidth;
    if (best.n_tiles == 0 || size(layout) < size(best)) best = layout;
  }
  if (n_outputs * per_output + extra <= PayloadLayout::kFewChannels) best.width = PayloadLayout::kFewChannels;
  return best;
}

namespace {

void copy_vectors(const std::int32_t* from, std::size_t width, const std::uint32_t* rows, std::size_t n_rows,
                  std::int32_t* to) {
  for (std::size_t i = 0; i < n_rows; ++i) std::copy_n(from + rows[i] * width, width, to + i * width);
}

}  // namespace

void NodeRows::take(const Payload& payload, const std::uint32_t* rows, std::size_t n_rows, bool copied) {
  const PayloadLayout& layout = payload.layout;
  rows_ = rows;
  n_rows_ = n_rows;
  if (!layout.packed && !copied) {
    place_ = rows;
    data_ = payload.data.data();
    tile_size_ = payload.n_rows * layout.row_size();
    return;
  }
  tile_size_ = n_rows * static_cast<std::size_t>(layout.width);
  const std::size_t size = static_cast<std::size_t>(layout.n_tiles) * tile_size_ + PayloadLayout::kSlack;
  if (own_data_.size() < size) own_data_ = Buffer<std::int32_t>(size);
  for (int t = 0; t < layout.n_tiles; ++t) {
    std::int32_t* to = own_data_.data() + static_cast<std::size_t>(t) * tile_size_;
    if (layout.packed)
      histogram_kernels().unpack(payload.tile(t).data, rows, n_rows, to);
    else
      copy_vectors(payload.tile(t).data, static_cast<std::size_t>(layout.width), rows, n_rows, to);
  }
  data_ = own_data_.data();
  own_places_.resize(n_rows);
  std::iota(own_places_.begin(), own_places_.end(), 0u);
  place_ = own_places_.data();
}

namespace {

// Calls body(begin, end, thread) for blocks of rows of so many numbers each.
template <class Body>
void over_blocks(std::size_t n_rows, std::size_t n_numbers, int n_threads, Body&& body) {
  if (n_rows * n_numbers < kParallelGathers) n_threads = 1;
  parallel_for(n_threads, (n_rows + kBlockRows - 1) / kBlockRows, [&](std::size_t block, int thread) {
    body(block * kBlockRows, std::min(n_rows, (block + 1) * kBlockRows), static_cast<std::size_t>(thread));
  });
}

// Sums of a block of rows: both parts of each.
struct BlockSums {
  std::vector<double> coarse, fine;
  explicit BlockSums(std::size_t n) : coarse(n, 0.0), fine(n, 0.0) {}
  RowSums of(const SumGrids& grids, std::size_t first) {
    return {grids.coarse.data() + first, grids.fine.data() + first, coarse.data() + first, fine.data() + first};
  }
};

// Weighted magnitudes of the gradients (d) and of the Hessian's entries, summed over all rows.
std::vector<double> sum_magnitudes(const Gradients& in, const GradientBounds& bounds, std::size_t n_entries,
                                   const Shard& shard, int n_threads, bool& positive) {
  const auto d = static_cast<std::size_t>(in.n_outputs);
  const std::size_t size = d + n_entries;
  const bool diagonal = n_entries == d && in.hessian != nullptr;
  std::vector<double> largest = bounds.gradient;
  if (diagonal) largest.insert(largest.end(), bounds.hessian.begin(), bounds.hessian.end());
  largest.resize(size, bounds.weight);  // entries of a full Hessian are within 1
  const SumGrids grids(largest, shard.n_rows(in.n_rows));
  std::vector<BlockSums> of_thread(static_cast<std::size_t>(std::max(n_threads, 1)), BlockSums(size));
  std::vector<float> least(of_thread.size(), 0.0f);
  over_blocks(in.n_rows, size, n_threads, [&](std::size_t begin, std::size_t end, std::size_t thread) {
    BlockSums& sums = of_thread[thread];
    sum_kernels().sum_magnitudes({in.gradient, in.gradient_stride, in.weight, in.n_outputs}, begin, end,
                                 sums.of(grids, 0));
    if (diagonal) {
      const float smallest = sum_kernels().sum_magnitudes({in.hessian, in.hessian_stride, in.weight, in.n_outputs},
                                                          begin, end, sums.of(grids, d));
      least[thread] = std::min(least[thread], smallest);
    } else if (n_entries > 0) {
      std::vector<double> entry(n_entries);
      for (std::size_t row = begin; row < end; ++row) {
        softmax_hessian(in.gradient + row * in.gradient_stride, in.label[row], in.n_outputs, entry.data());
        const double weight = in.weight != nullptr ? in.weight[row] : 1.0;
        for (std::size_t e = d; e < size; ++e)
          add_exactly(weight * std::fabs(entry[e - d]), grids.coarse[e], grids.fine[e], sums.coarse[e], sums.fine[e]);
      }
    }
  });
  std::vector<double> parts(2 * size + 1, 0.0);  // coarse, then fine, then the shards with a negative entry
  for (const BlockSums& of : of_thread)
    for (std::size_t c = 0; c < size; ++c) {
      parts[c] += of.coarse[c];
      parts[size + c] += of.fine[c];
    }
  parts.back() = *std::min_element(least.begin(), least.end()) < 0 ? 1.0 : 0.0;
  shard.add(parts);
  positive = parts.back() == 0.0;
  std::vector<double> total(size);
  for (std::size_t c = 0; c < size; ++c) {
    total[c] = parts[c] + parts[size + c];
    if (!std::isfinite(total[c])) throw std::overflow_error("the gradients are not finite");
  }
  return total;
}

// Of all rows, weighted; a shared Hessian is positive.
double sum_curvature(const Gradients& in, const Shard& shard, int n_threads) {
  const WeightedRows rows{in.curvature, 1, in.weight, 1};
  std::vector<double> largest = largest_magnitudes(rows, in.n_rows, n_threads);
  shard.largest(largest);
  const SumGrids grids(largest, shard.n_rows(in.n_rows));
  std::vector<BlockSums> of_thread(static_cast<std::size_t>(std::max(n_threads, 1)), BlockSums(1));
  std::vector<float> smallest(of_thread.size(), 0.0f);
  over_blocks(in.n_rows, 1, n_threads, [&](std::size_t begin, std::size_t end, std::size_t thread) {
    const float of_block = sum_kernels().sum_magnitudes(rows, begin, end, of_thread[thread].of(grids, 0));
    smallest[thread] = std::min(smallest[thread], of_block);
  });
  BlockSums& sums = of_thread[0];
  for (std::size_t thread = 1; thread < of_thread.size(); ++thread) {
    sums.coarse[0] += of_thread[thread].coarse[0];
    sums.fine[0] += of_thread[thread].fine[0];
  }
  const double least = shard.smallest(*std::min_element(smallest.begin(), smallest.end()));
  shard.add(sums.coarse, sums.fine);
  const double sum = sums.coarse[0] + sums.fine[0];
  if (!std::isfinite(sum)) throw std::overflow_error("the Hessian is not finite");
  if (least < 0) throw std::domain_error("the mean Hessian of a row is negative: it cannot stand for all outputs");
  return sum;
}

struct Scales {
  std::vector<double> gradient, hessian;  // from real numbers to integers, before the weight is applied
  double shared = 1.0;
  double weight = 1.0;
};

void quantize_full(const Gradients& in, const Scales& scales, int n_threads, Payload& payload) {
  const auto d = static_cast<std::size_t>(in.n_outputs);
  const auto width = static_cast<std::size_t>(payload.layout.width);
  const std::size_t n_channels = 1 + d + triangle(d);
  over_blocks(in.n_rows, n_channels, n_threads, [&](std::size_t begin, std::size_t end, std::size_t) {
    std::vector<double> entry(triangle(d));
    std::vector<std::int32_t> channel(payload.layout.n_channels(), 0);
    for (std::size_t row = begin; row < end; ++row) {
      const float* g = in.gradient + row * in.gradient_stride;
      const double weight = in.weight != nullptr ? in.weight[row] * scales.weight : 1.0;
      softmax_hessian(g, in.label[row], in.n_outputs, entry.data());
      channel[0] = 1;
      for (std::size_t j = 0; j < d; ++j)
        channel[1 + j] = on_grid(static_cast<double>(g[j]), scales.gradient[j], weight);
      for (std::size_t e = 0; e < entry.size(); ++e) channel[1 + d + e] = on_grid(entry[e], scales.hessian[e], weight);
      for (std::size_t c = 0; c < payload.layout.n_channels(); ++c)
        payload.data[(c / width * in.n_rows + row) * width + c % width] = c < n_channels ? channel[c] : 0;
    }
  });
}

void quantize_tiles(const Gradients& in, const Scales& scales, const Shard& shard, int n_threads, Payload& payload) {
  const PayloadLayout& layout = payload.layout;
  const bool diagonal = layout.hessian == HessianKind::kDiagonal;
  over_blocks(in.n_rows, layout.n_channels(), n_threads, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (int t = 0; t < layout.n_tiles; ++t) {
      const int first = t * layout.outputs_per_tile;
      QuantizeTile tile;
      tile.out = payload.data.data() + static_cast<std::size_t>(t) * in.n_rows * layout.row_size();
      tile.width = layout.width;
      tile.packed = layout.packed;
      tile.n_outputs = layout.outputs_in(t);
      tile.first_output = first;
      tile.all_outputs = layout.n_outputs;
      tile.gradient = in.gradient + first;
      tile.gradient_stride = in.gradient_stride;
      tile.gradient_scale = scales.gradient.data() + first;
      tile.hessian = diagonal ? in.hessian + first : nullptr;
      tile.hessian_stride = in.hessian_stride;
      tile.hessian_scale = diagonal ? scales.hessian.data() + first : nullptr;
      tile.hessian_channel = layout.hessian_channel();
      tile.weight = in.weight;
      tile.weight_scale = scales.weight;
      tile.count_channel = t == 0 ? layout.count_channel() : -1;
      tile.shared_channel = t == 0 && layout.hessian == HessianKind::kShared ? layout.weight_channel() : -1;
      tile.shared_scale = scales.shared;
      tile.curvature = in.curvature;
      shard.each_run(begin, end, [&](std::size_t first_row, std::size_t last_row, std::size_t shift) {
        tile.row_shift = shift;
        histogram_kernels().quantize(tile, first_row, last_row);
      });
    }
  });
}

}  // namespace

void Payload::clear_others(const std::uint32_t* rows, std::size_t n) {
  const std::size_t size = layout.row_size();
  for (int t = 0; t < layout.n_tiles; ++t) {
    std::int32_t* tile = data.data() + static_cast<std::size_t>(t) * n_rows * size;
    std::size_t next = 0;
    for (std::size_t i = 0; i <= n; ++i) {
      const std::size_t row = i < n ? rows[i] : n_rows;
      std::fill(tile + next * size, tile + row * size, 0);
      next = row + 1;
    }
  }
  is_cleared = true;
}

void quantize(const Gradients& in, const GradientBounds& bounds, const QuantizeSettings& settings, const Shard& shard,
              Payload& payload) {
  payload.is_cleared = false;
  const bool full = settings.full_hessian;
  const HessianKind kind = full                                              ? HessianKind::kFull
                           : in.hessian != nullptr                           ? HessianKind::kDiagonal
                           : in.weight != nullptr || in.curvature != nullptr ? HessianKind::kShared
                                                                             : HessianKind::kCount;
  const std::size_t n = in.n_rows;
  const auto d = static_cast<std::size_t>(in.n_outputs);
  payload.layout =
      lay_out_payload(in.n_outputs, kind, settings.pack && can_pack(shard.n_rows(n), in.weight != nullptr));
  payload.n_rows = n;
  const std::size_t size = n * static_cast<std::size_t>(payload.layout.n_tiles) * payload.layout.row_size();
  if (payload.data.size() != size) payload.data = Buffer<std::int32_t>(size);

  const std::size_t n_entries = full ? triangle(d) : kind == HessianKind::kDiagonal ? d : 0;
  const std::vector<double> total =
      sum_magnitudes(in, bounds, n_entries, shard, settings.n_threads, payload.hessian_is_positive);
  const FixedPoint grid(in.weight, n, payload.layout.sum_bits(), payload.layout.packed, shard);
  Scales scales;
  scales.weight = 1.0 / grid.weight_unit;
  payload.gradient_unit.assign(d, 1.0);
  payload.hessian_unit.assign(std::max(d, n_entries), 1.0);
  for (std::size_t j = 0; j < d; ++j) {
    payload.gradient_unit[j] = grid.unit(total[j]);
    scales.gradient.push_back(grid.weight_unit / payload.gradient_unit[j]);
  }
  for (std::size_t e = 0; e < n_entries; ++e) {
    payload.hessian_unit[e] = grid.unit(total[d + e]);
    scales.hessian.push_back(grid.weight_unit / payload.hessian_unit[e]);
  }
  if (kind == HessianKind::kShared) {
    const double unit =
        grid.unit(in.curvature != nullptr ? sum_curvature(in, shard, settings.n_threads) : grid.total_weight);
    payload.hessian_unit.assign(d, unit);
    scales.shared = grid.weight_unit / unit;
  }
  if (full)
    quantize_full(in, scales, settings.n_threads, payload);
  else
    quantize_tiles(in, scales, shard, settings.n_threads, payload);
}

}  // namespace polyleaf
