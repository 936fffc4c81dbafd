#include "histogram_kernels.hpp"

#include "rounding.hpp"
#include "row_vector.hpp"

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

constexpr std::size_t kLineEntries = 64 / sizeof(std::uint16_t);  // of a sparse tile in a cache line

float sum_magnitudes(const float* values, std::size_t stride, const double* weight, std::size_t begin, std::size_t end,
                     int n_outputs, double* out) {
  float least = 0.0f;
  for (std::size_t row = begin; row < end; ++row) {
    const float* v = values + row * stride;
    const double w = weight != nullptr ? weight[row] : 1.0;
    if (w == 0.0) continue;  // not in the sample
    for (int j = 0; j < n_outputs; ++j) {
      out[j] += w * __builtin_fabs(static_cast<double>(v[j]));
      least = v[j] < least ? v[j] : least;
    }
  }
  return least;
}

void quantize_run(const float* values, const double* scale, int n, bool weighted, double weight, std::int32_t* out) {
  if (weighted) {
    for (int j = 0; j < n; ++j) out[j] = to_int32(weight * round_even(static_cast<double>(values[j]) * scale[j]));
  } else {
    for (int j = 0; j < n; ++j) out[j] = to_int32(static_cast<double>(values[j]) * scale[j]);
  }
}

void quantize(const QuantizeTile& tile, std::size_t begin, std::size_t end) {
  const bool weighted = tile.weight != nullptr;
  for (std::size_t row = begin; row < end; ++row) {
    if (weighted && tile.weight[row] == 0.0) continue;  // not in the sample
    std::int32_t* out = tile.out + row * static_cast<std::size_t>(tile.width);
    for (int c = 0; c < tile.width; ++c) out[c] = 0;
    const double weight = weighted ? tile.weight[row] * tile.weight_scale : 1.0;
    quantize_run(tile.gradient + row * tile.gradient_stride, tile.gradient_scale, tile.n_outputs, weighted, weight,
                 out);
    if (tile.hessian != nullptr)
      quantize_run(tile.hessian + row * tile.hessian_stride, tile.hessian_scale, tile.n_outputs, weighted, weight,
                   out + tile.hessian_channel);
    if (tile.count_channel >= 0) out[tile.count_channel] = 1;
    if (tile.shared_channel >= 0) {
      const double shared =
          tile.curvature != nullptr ? round_even(tile.curvature[row] * tile.shared_scale) : tile.shared_scale;
      out[tile.shared_channel] = to_int32(weight * shared);
    }
  }
}

template <class Vector, class Code, bool Some>
void accumulate_dense(const AccumulateTile& t) {
  constexpr std::size_t kStride = Vector::kStride;
  // Copies: what is stored below could be a part of `t`, for all the compiler knows.
  const Code* codes = static_cast<const Code*>(t.codes);
  const std::int32_t* payload = t.payload;
  const std::uint32_t* slot_begin = t.slot_begin;
  const std::uint32_t* positions = t.positions;
  const std::uint32_t* rows = t.rows;
  std::int32_t* histogram = t.histogram;
  const std::size_t k = t.n_features;
  const std::size_t n_rows = t.n_rows;
  const std::size_t n_positions = t.n_positions;
  for (std::size_t i = 0; i < n_rows; ++i) {
    const std::size_t row = rows[i];
    if (i + kAhead < n_rows) {
      const std::size_t next = rows[i + kAhead];
      __builtin_prefetch(codes + next * k);
      Vector::prefetch(payload + next * kStride);
    }
    const Vector vector(payload + row * kStride);
    const Code* code = codes + row * k;
    if (Some) {
      for (std::size_t i = 0; i < n_positions; ++i) {
        const std::uint32_t f = positions[i];
        vector.add_to(histogram + (slot_begin[f] + code[f]) * kStride);
      }
    } else {
      for (std::size_t f = 0; f < k; ++f) vector.add_to(histogram + (slot_begin[f] + code[f]) * kStride);
    }
  }
}

template <class Vector>
void accumulate_sparse(const AccumulateTile& t) {
  constexpr std::size_t kStride = Vector::kStride;
  const std::int32_t* payload = t.payload;
  const std::uint32_t* row_begin = t.row_begin;
  const std::uint16_t* entries = t.entries;
  const std::uint32_t* rows = t.rows;
  std::int32_t* histogram = t.histogram;
  const std::size_t n_rows = t.n_rows;
  const std::size_t entries_ahead = t.entry_lines * kLineEntries;
  for (std::size_t i = 0; i < n_rows; ++i) {
    const std::size_t row = rows[i];
    if (i + kAhead < n_rows) {
      const std::size_t next = rows[i + kAhead];
      for (std::size_t e = 0; e < entries_ahead; e += kLineEntries) __builtin_prefetch(entries + row_begin[next] + e);
      Vector::prefetch(payload + next * kStride);
    }
    if (i + 2 * kAhead < n_rows) __builtin_prefetch(row_begin + rows[i + 2 * kAhead]);
    const Vector vector(payload + row * kStride);
    const std::uint32_t end = row_begin[row + 1];
    for (std::uint32_t e = row_begin[row]; e < end; ++e) vector.add_to(histogram + entries[e] * kStride);
  }
}

template <class Vector>
void accumulate_rows(const AccumulateTile& t) {
  if (t.row_begin != nullptr)
    accumulate_sparse<Vector>(t);
  else if (t.positions != nullptr)
    t.wide ? accumulate_dense<Vector, std::uint16_t, true>(t) : accumulate_dense<Vector, std::uint8_t, true>(t);
  else
    t.wide ? accumulate_dense<Vector, std::uint16_t, false>(t) : accumulate_dense<Vector, std::uint8_t, false>(t);
}

void accumulate(const AccumulateTile& t) {
  with_rows(t.width, [&](auto type) { accumulate_rows<typename decltype(type)::type>(t); });
}

void sum_payload(const std::int32_t* payload, int width, const std::uint32_t* rows, std::size_t n_rows,
                 std::int32_t* out) {
  sum_rows_of_payload(payload, width, rows, n_rows, out);
}

void subtract(std::int32_t* from, const std::int32_t* what, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) from[i] -= what[i];
}

template <class Vector>
void rest_of(const std::int32_t* totals, const std::int32_t* bins, std::size_t n, std::int32_t* out) {
  constexpr std::size_t kStride = Vector::kStride;
  alignas(64) std::int32_t sums[kStride] = {0};
  Vector sum(sums);
  for (std::size_t b = 0; b < n; ++b) sum.add(Vector(bins + b * kStride));
  sum.add_to(sums);
  for (std::size_t c = 0; c < kStride; ++c) out[c] = totals[c] - sums[c];
}

void rest_of_bins(const std::int32_t* totals, const std::int32_t* bins, std::size_t n, int width, std::int32_t* out) {
  with_rows(width, [&](auto type) { rest_of<typename decltype(type)::type>(totals, bins, n, out); });
}

}  // namespace

extern const HistogramKernels kHistogramKernels;
const HistogramKernels kHistogramKernels = {sum_magnitudes, quantize, accumulate, sum_payload, subtract, rest_of_bins};

}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
