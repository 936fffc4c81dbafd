#include "kernels/histogram.hpp"

#include "base/row_vector.hpp"
#include "rules/dither.hpp"
#include "rules/grid.hpp"

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

constexpr std::size_t kLineCells = 64 / sizeof(std::uint16_t);  // in a cache line

void quantize_run(const float* values, const double* scale, int n, bool weighted, double weight, std::int32_t* out) {
  if (weighted) {
    for (int j = 0; j < n; ++j) out[j] = on_grid(static_cast<double>(values[j]), scale[j], weight);
  } else {
    for (int j = 0; j < n; ++j) out[j] = to_int32(static_cast<double>(values[j]) * scale[j]);
  }
}

// At random: sums of few bits would lose what is below half a unit, and small gradients are many. `channel` is that of
// the first value.
void dither_run(const float* values, const double* scale, int n, std::size_t row, int channel, std::int32_t* out) {
  for (int j = 0; j < n; ++j) {
    std::uint32_t bits;
    __builtin_memcpy(&bits, values + j, sizeof bits);
    const double by = dither(bits, static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(channel + j));
    out[j] = to_int32(static_cast<double>(values[j]) * scale[j] + by);
  }
}

constexpr int kFieldBits = 21;
typedef std::int64_t Packed __attribute__((vector_size(64), aligned(32), may_alias));
typedef std::int32_t Channels __attribute__((vector_size(32), aligned(4), may_alias));

inline void pack(const std::int32_t* channels, std::int32_t* out) {
  std::int64_t packed[kLane];
  for (int l = 0; l < kLane; ++l)
    packed[l] = channels[l] + channels[kLane + l] * (std::int64_t{1} << kFieldBits) +
                channels[2 * kLane + l] * (std::int64_t{1} << 2 * kFieldBits);
  __builtin_memcpy(out, packed, sizeof packed);
}

inline void unpack_one(const std::int32_t* packed, std::int32_t* out) {
  constexpr int kAbove = 64 - kFieldBits;
  const Packed all = *reinterpret_cast<const Packed*>(packed);
  const Packed low = (all << kAbove) >> kAbove;
  const Packed rest = all - low;
  const Packed middle = (rest << (kAbove - kFieldBits)) >> kAbove;
  const Packed high = (rest - (middle << kFieldBits)) >> 2 * kFieldBits;
  Channels* channels = reinterpret_cast<Channels*>(out);
  channels[0] = __builtin_convertvector(low, Channels);
  channels[1] = __builtin_convertvector(middle, Channels);
  channels[2] = __builtin_convertvector(high, Channels);
}

// A row whose channels are packed has no weight.
void quantize_packed(const QuantizeTile& tile, std::size_t begin, std::size_t end) {
  for (std::size_t row = begin; row < end; ++row) {
    const std::size_t number = row + tile.row_shift;
    std::int32_t channels[kPackedWidth] = {0};
    dither_run(tile.gradient + row * tile.gradient_stride, tile.gradient_scale, tile.n_outputs, number,
               tile.first_output, channels);
    if (tile.hessian != nullptr)
      dither_run(tile.hessian + row * tile.hessian_stride, tile.hessian_scale, tile.n_outputs, number,
                 tile.all_outputs + tile.first_output, channels + tile.hessian_channel);
    if (tile.count_channel >= 0) channels[tile.count_channel] = 1;
    if (tile.shared_channel >= 0)
      dither_run(tile.curvature + row, &tile.shared_scale, 1, number, tile.all_outputs, channels + tile.shared_channel);
    pack(channels, tile.out + row * kPackedSize);
  }
}

void quantize(const QuantizeTile& tile, std::size_t begin, std::size_t end) {
  if (tile.packed) return quantize_packed(tile, begin, end);
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
      out[tile.shared_channel] = tile.curvature != nullptr
                                     ? on_grid(static_cast<double>(tile.curvature[row]), tile.shared_scale, weight)
                                     : to_int32(weight * tile.shared_scale);
    }
  }
}

// A tile of features with 255 bins has eight of them: the codes of a row are one word, and where the bins of each
// begin stays in registers.
//
// What it buys: a fifth to a quarter of this loop with one output, a row of 16 bytes.
constexpr std::size_t kEight = 8;

// The codes of eight features, the first one in the lowest byte.
inline std::uint64_t eight_codes(const std::uint8_t* codes) {
  std::uint64_t word;
  __builtin_memcpy(&word, codes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  return word;
}

template <class Vector>
void add_rows_of_eight(const RowsToAdd& r, const TileCodes& t) {
  constexpr std::size_t kStride = Vector::kStride;
  const auto* codes = static_cast<const std::uint8_t*>(t.codes);
  const std::int32_t* payload = r.payload.data;
  const std::uint32_t* rows = r.rows;
  const std::size_t n_rows = r.n_rows;
  std::int32_t* bins[kEight];
  for (std::size_t f = 0; f < kEight; ++f) bins[f] = r.histogram + t.slot_begin[f] * kStride;
  for (std::size_t i = 0; i < n_rows; ++i) {
    const std::size_t row = rows[i];
    if (i + kAhead < n_rows) {
      const std::size_t next = rows[i + kAhead];
      __builtin_prefetch(codes + next * kEight);
      Vector::prefetch(payload + next * kStride);
    }
    const Vector vector(payload + row * kStride);
    std::uint64_t code = eight_codes(codes + row * kEight);
#pragma GCC unroll 8
    for (std::size_t f = 0; f < kEight; ++f, code >>= 8) vector.add_to(bins[f] + (code & 255) * kStride);
  }
}

template <class Vector, class Code, bool Some>
void add_rows_of_codes(const RowsToAdd& r, const TileCodes& t) {
  if (!Some && sizeof(Code) == 1 && t.n_features == kEight) return add_rows_of_eight<Vector>(r, t);
  constexpr std::size_t kStride = Vector::kStride;
  // Copies: what is stored below could be a part of `r` or `t`, for all the compiler knows.
  const Code* codes = static_cast<const Code*>(t.codes);
  const std::int32_t* payload = r.payload.data;
  const std::uint32_t* slot_begin = t.slot_begin;
  const std::uint32_t* positions = t.positions;
  const std::uint32_t* rows = r.rows;
  std::int32_t* histogram = r.histogram;
  const std::size_t k = t.n_features;
  const std::size_t n_rows = r.n_rows;
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
void add_rows_of_cells(const RowsToAdd& r, const TileCells& t) {
  constexpr std::size_t kStride = Vector::kStride;
  const std::int32_t* payload = r.payload.data;
  const std::uint32_t* row_begin = t.row_begin;
  const std::uint16_t* slots = t.slots;
  const std::uint32_t* rows = r.rows;
  std::int32_t* histogram = r.histogram;
  const std::size_t n_rows = r.n_rows;
  const std::size_t cells_ahead = t.lines * kLineCells;
  for (std::size_t i = 0; i < n_rows; ++i) {
    const std::size_t row = rows[i];
    if (i + kAhead < n_rows) {
      const std::size_t next = rows[i + kAhead];
      for (std::size_t e = 0; e < cells_ahead; e += kLineCells) __builtin_prefetch(slots + row_begin[next] + e);
      Vector::prefetch(payload + next * kStride);
    }
    if (i + 2 * kAhead < n_rows) __builtin_prefetch(row_begin + rows[i + 2 * kAhead]);
    const Vector vector(payload + row * kStride);
    const std::uint32_t end = row_begin[row + 1];
    for (std::uint32_t e = row_begin[row]; e < end; ++e) vector.add_to(histogram + slots[e] * kStride);
  }
}

template <class Vector>
void add_each_row(const RowsToAdd& r, const RowSlots& s) {
  constexpr std::size_t kStride = Vector::kStride;
  const std::int32_t* payload = r.payload.data;
  const std::uint32_t* rows = r.rows;
  const std::uint16_t* slots = s.slots;
  std::int32_t* histogram = r.histogram;
  const std::size_t n_rows = r.n_rows;
  const std::size_t n_to_fetch = n_rows + s.n_behind;
  for (std::size_t i = 0; i < n_rows; ++i) {
    if (i + kAhead < n_to_fetch) Vector::prefetch(payload + rows[i + kAhead] * kStride);
    Vector(payload + rows[i] * kStride).add_to(histogram + slots[i] * kStride);
  }
}

// Calls body(VectorType of the rows).
template <class Body>
void with_vectors(int width, bool packed, Body&& body) {
  packed ? body(VectorType<PackedVector>()) : with_rows(width, body);
}

void add_codes(const RowsToAdd& r, const TileCodes& t) {
  with_vectors(r.payload.width, r.payload.packed, [&](auto type) {
    using Vector = typename decltype(type)::type;
    if (t.positions != nullptr)
      t.wide ? add_rows_of_codes<Vector, std::uint16_t, true>(r, t)
             : add_rows_of_codes<Vector, std::uint8_t, true>(r, t);
    else
      t.wide ? add_rows_of_codes<Vector, std::uint16_t, false>(r, t)
             : add_rows_of_codes<Vector, std::uint8_t, false>(r, t);
  });
}

void add_cells(const RowsToAdd& r, const TileCells& t) {
  with_vectors(r.payload.width, r.payload.packed,
               [&](auto type) { add_rows_of_cells<typename decltype(type)::type>(r, t); });
}

void add_each(const RowsToAdd& r, const RowSlots& slots) {
  with_vectors(r.payload.width, r.payload.packed,
               [&](auto type) { add_each_row<typename decltype(type)::type>(r, slots); });
}

void fetch_payload(const SortedChunk& c) {
  constexpr std::size_t kLineChannels = 64 / sizeof(std::int32_t);
  const auto width = static_cast<std::size_t>(c.payload.width);
  for (std::size_t i = 0; i < c.n_rows; ++i)
    for (std::size_t channel = 0; channel < width; channel += kLineChannels)
      __builtin_prefetch(c.payload.data + c.rows[i] * width + channel, 0, 2);
}

template <class Vector>
void add_sorted_rows(const SortedChunk& c) {
  constexpr std::size_t kStride = Vector::kStride;
  const std::int32_t* payload = c.payload.data;
  const std::uint32_t* order = c.order;
  std::size_t i = 0;
  for (std::size_t bin = 0; bin < c.n_bins; ++bin) {
    const std::size_t end = c.ends[bin];
    if (i == end) continue;
    std::int32_t* to = c.histogram + bin * kStride;
    Vector sum(to);
    for (; i < end; ++i) sum.add(Vector(payload + order[i] * kStride));
    sum.store(to);
  }
}

void add_sorted(const SortedChunk& c) {
  with_rows(c.payload.width, [&](auto type) { add_sorted_rows<typename decltype(type)::type>(c); });
}

// Feature by feature, the last one first: its bins are summed over the combinations of the features before, and these
// over its bins, which leaves a combination without it.
template <class Vector>
void sum_combination(const CombinationTile& t, std::size_t at) {
  constexpr std::size_t kStride = Vector::kStride;
  std::int32_t* left = t.sums + t.begin[at] * kStride;
  std::size_t n_left = t.begin[at + 1] - t.begin[at];
  const std::uint32_t first = t.first[at];
  for (std::uint32_t position = t.first[at + 1] - 1; position > first; --position) {
    const std::size_t n_bins = t.slot_begin[position + 1] - t.slot_begin[position];
    std::int32_t* bins = t.histogram + t.slot_begin[position] * kStride;
    n_left /= n_bins;
    for (std::size_t a = 0; a < n_left; ++a) {
      const std::int32_t* from = left + a * n_bins * kStride;
      Vector sum(from);
      if (a == 0)
        sum.store(bins);
      else
        sum.add_to(bins);
      for (std::size_t b = 1; b < n_bins; ++b) {
        const Vector one(from + b * kStride);
        if (a == 0)
          one.store(bins + b * kStride);
        else
          one.add_to(bins + b * kStride);
        sum.add(one);
      }
      sum.store(left + a * kStride);
    }
  }
  for (std::size_t b = 0; b < n_left; ++b)
    Vector(left + b * kStride).store(t.histogram + (t.slot_begin[first] + b) * kStride);
}

void sum_combinations(const CombinationTile& t) {
  with_vectors(t.width, t.packed, [&](auto type) {
    for (std::size_t at = 0; at < t.size; ++at) sum_combination<typename decltype(type)::type>(t, at);
  });
}

void sum_payload(const PayloadRows& payload, const std::uint32_t* rows, std::size_t n_rows, std::int32_t* out) {
  if (!payload.packed) return sum_rows_of_payload(payload.data, payload.width, rows, n_rows, out);
  alignas(64) std::int32_t packed[kPackedSize] = {0};
  sum_vectors<PackedVector>(payload.data, rows, n_rows, packed);
  std::int32_t sums[kPackedWidth];
  unpack_one(packed, sums);
  for (int c = 0; c < kPackedWidth; ++c) out[c] += sums[c];
}

void unpack(const std::int32_t* packed, const std::uint32_t* rows, std::size_t n, std::int32_t* out) {
  for (std::size_t i = 0; i < n; ++i, out += kPackedWidth)
    unpack_one(packed + (rows == nullptr ? i : rows[i]) * static_cast<std::size_t>(kPackedSize), out);
}

void add(std::int32_t* to, const std::int32_t* what, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] += what[i];
}

void subtract(std::int32_t* from, const std::int32_t* what, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) from[i] -= what[i];
}

template <class Vector>
void subtract_from_bins(const LosingBins& b) {
  constexpr std::size_t kStride = Vector::kStride;
  alignas(64) std::int32_t minus[kStride];
  for (std::size_t c = 0; c < kStride; ++c) minus[c] = -b.sums[c];
  const Vector vector(minus);
  for (std::size_t i = 0; i < b.n; ++i)
    vector.add_to(b.histogram + b.slots[b.positions == nullptr ? i : b.positions[i]] * kStride);
}

void subtract_from(const LosingBins& b) {
  with_rows(b.width, [&](auto type) { subtract_from_bins<typename decltype(type)::type>(b); });
}

template <class Vector>
void rest_of(const std::int32_t* totals, const std::int32_t* bins, std::size_t n, std::int32_t* one) {
  constexpr std::size_t kStride = Vector::kStride;
  alignas(64) std::int32_t sums[kStride] = {0};
  Vector sum(sums);
  for (std::size_t b = 0; b < n; ++b) sum.add(Vector(bins + b * kStride));
  sum.add_to(sums);
  for (std::size_t c = 0; c < kStride; ++c) one[c] = totals[c] - (sums[c] - one[c]);
}

void rest_of_bins(const std::int32_t* totals, const std::int32_t* bins, std::size_t n, int width, std::int32_t* one) {
  with_rows(width, [&](auto type) { rest_of<typename decltype(type)::type>(totals, bins, n, one); });
}

}  // namespace

extern const HistogramKernels kHistogramKernels;
const HistogramKernels kHistogramKernels = {quantize,   add_codes,     add_cells,        add_each, fetch_payload,
                                            add_sorted, sum_payload,   sum_combinations, unpack,   add,
                                            subtract,   subtract_from, rest_of_bins};

}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
