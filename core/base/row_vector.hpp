// A row's numbers in registers, for files that are compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#ifndef POLYLEAF_ISA
#error "POLYLEAF_ISA names the instruction set this file is compiled for"
#endif

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

constexpr int kLane = 8;            // channels are padded to whole lanes, few of them to half a lane
constexpr std::size_t kAhead = 12;  // rows: scattered rows are fetched this far ahead

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#else
constexpr int kVectorBytes = 32;
#endif

// A vector of `Bytes` bytes of integers: a row of the payload, or a bin.
template <class Number, int Bytes>
struct RowVector {
  static constexpr std::size_t kStride = Bytes / sizeof(std::int32_t);  // from one row or bin to the next
  static constexpr int kWide = Bytes / kVectorBytes;                    // whole vectors
  static constexpr int kRest = (Bytes - kWide * kVectorBytes) / 32;     // half a vector left over (AVX-512)
  typedef Number Wide __attribute__((vector_size(kVectorBytes), aligned(32), may_alias));
  typedef Number Half __attribute__((vector_size(32), aligned(32), may_alias));
  Wide wide[kWide > 0 ? kWide : 1];
  Half half;

  explicit RowVector(const std::int32_t* row) {
    for (int v = 0; v < kWide; ++v) wide[v] = reinterpret_cast<const Wide*>(row)[v];
    if (kRest != 0) half = *reinterpret_cast<const Half*>(row + kWide * kVectorBytes / 4);
  }
  void add(const RowVector& other) {
    for (int v = 0; v < kWide; ++v) wide[v] += other.wide[v];
    if (kRest != 0) half += other.half;
  }
  void add_to(std::int32_t* bin) const {
    for (int v = 0; v < kWide; ++v) reinterpret_cast<Wide*>(bin)[v] += wide[v];
    if (kRest != 0) *reinterpret_cast<Half*>(bin + kWide * kVectorBytes / 4) += half;
  }
  void store(std::int32_t* to) const {
    for (int v = 0; v < kWide; ++v) reinterpret_cast<Wide*>(to)[v] = wide[v];
    if (kRest != 0) *reinterpret_cast<Half*>(to + kWide * kVectorBytes / 4) = half;
  }
  static void prefetch(const std::int32_t* row) {
    for (std::size_t c = 0; c < kStride; c += 16) __builtin_prefetch(row + c);
  }
};

// Rows of four channels or fewer: half a lane.
template <class Number>
struct RowVector<Number, 16> {
  static constexpr std::size_t kStride = 4;
  typedef Number Short __attribute__((vector_size(16), aligned(16), may_alias));
  Short numbers;

  explicit RowVector(const std::int32_t* row) : numbers(*reinterpret_cast<const Short*>(row)) {}
  void add(const RowVector& other) { numbers += other.numbers; }
  void add_to(std::int32_t* bin) const { *reinterpret_cast<Short*>(bin) += numbers; }
  void store(std::int32_t* to) const { *reinterpret_cast<Short*>(to) = numbers; }
  static void prefetch(const std::int32_t* row) { __builtin_prefetch(row); }
};

template <class Vector>
struct VectorType {
  typedef Vector type;
};

// Three channels to a number of 64 bits (payload.hpp).
typedef RowVector<std::int64_t, 64> PackedVector;

// Calls body(VectorType of the rows) for rows of so many channels.
template <class Body>
void with_rows(int width, Body&& body) {
  switch (width / kLane) {
    case 0:
      return body(VectorType<RowVector<std::int32_t, 16>>());
    case 1:
      return body(VectorType<RowVector<std::int32_t, 32>>());
    case 2:
      return body(VectorType<RowVector<std::int32_t, 64>>());
    case 3:
      return body(VectorType<RowVector<std::int32_t, 96>>());
    default:
      return body(VectorType<RowVector<std::int32_t, 128>>());
  }
}

// Adds the vectors of the rows to out.
template <class Vector>
void sum_vectors(const std::int32_t* payload, const std::uint32_t* rows, std::size_t n_rows, std::int32_t* out) {
  alignas(64) std::int32_t sums[Vector::kStride] = {0};
  Vector sum(sums);
  for (std::size_t i = 0; i < n_rows; ++i) {
    if (i + kAhead < n_rows) Vector::prefetch(payload + rows[i + kAhead] * Vector::kStride);
    sum.add(Vector(payload + rows[i] * Vector::kStride));
  }
  sum.add_to(sums);
  for (std::size_t c = 0; c < Vector::kStride; ++c) out[c] += sums[c];
}

inline void sum_rows_of_payload(const std::int32_t* payload, int width, const std::uint32_t* rows, std::size_t n_rows,
                                std::int32_t* out) {
  with_rows(width, [&](auto type) { sum_vectors<typename decltype(type)::type>(payload, rows, n_rows, out); });
}

}  // namespace
}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
