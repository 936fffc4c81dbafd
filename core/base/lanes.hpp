// Numbers side by side in vectors, for files that are compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/row_vector.hpp"

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

inline double sum_lanes(const double* lane) {
  return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

// `Count` numbers side by side, in vectors as wide as those of the processor: wider ones go through memory. Their
// number is the same for all instruction sets: it is an order of summing. Written with vector types: left to itself,
// the compiler adds lanes up, or takes the largest of them, one by one.
template <class Number, int Count>
struct SideBySide {
  static constexpr int kBytes = Count * static_cast<int>(sizeof(Number));
  static constexpr int kWidth = kVectorBytes < kBytes ? kVectorBytes : kBytes;
  static constexpr int kVectors = kBytes / kWidth;
  static constexpr int kPerVector = kWidth / static_cast<int>(sizeof(Number));
  typedef Number Vector __attribute__((vector_size(kWidth), aligned(sizeof(Number)), may_alias));
  Vector vector[kVectors] = {};

  SideBySide& operator+=(const SideBySide& other) {
    for (int v = 0; v < kVectors; ++v) vector[v] += other.vector[v];
    return *this;
  }
  friend SideBySide operator*(const SideBySide& a, const SideBySide& b) {
    SideBySide out;
    for (int v = 0; v < kVectors; ++v) out.vector[v] = a.vector[v] * b.vector[v];
    return out;
  }
  void raise(const SideBySide& other) {
    for (int v = 0; v < kVectors; ++v) vector[v] = other.vector[v] > vector[v] ? other.vector[v] : vector[v];
  }
  void store(Number* to) const { __builtin_memcpy(to, vector, sizeof vector); }
};

constexpr int kFloats = 16;
using Floats = SideBySide<float, kFloats>;

inline Floats load_floats(const float* from) {
  Floats out;
  for (int v = 0; v < Floats::kVectors; ++v)
    out.vector[v] = *reinterpret_cast<const Floats::Vector*>(from + v * Floats::kPerVector);
  return out;
}

inline float sum_floats(const Floats& v) {
  typedef float Half __attribute__((vector_size(32)));
  typedef float Quarter __attribute__((vector_size(16)));
  Half halves[2];
  __builtin_memcpy(halves, v.vector, sizeof halves);
  const Half half = halves[0] + halves[1];
  Quarter quarters[2];
  __builtin_memcpy(quarters, &half, sizeof quarters);
  const Quarter quarter = quarters[0] + quarters[1];
  return (quarter[0] + quarter[1]) + (quarter[2] + quarter[3]);
}

using Lanes = SideBySide<double, kLane>;

inline Lanes load_lanes(const double* from) {
  Lanes out;
  for (int v = 0; v < Lanes::kVectors; ++v)
    out.vector[v] = *reinterpret_cast<const Lanes::Vector*>(from + v * Lanes::kPerVector);
  return out;
}
inline Lanes load_lanes(const float* from) {
  typedef float Half __attribute__((vector_size(Lanes::kWidth / 2), aligned(4), may_alias));
  Lanes out;
  for (int v = 0; v < Lanes::kVectors; ++v)
    out.vector[v] =
        __builtin_convertvector(*reinterpret_cast<const Half*>(from + v * Lanes::kPerVector), Lanes::Vector);
  return out;
}

// In lanes, so that one addition or comparison does not wait for the one before.
template <class Number>
inline double sum_of(const Number* x, int n) {
  Lanes sums;
  int j = 0;
  for (; j + kLane <= n; j += kLane) sums += load_lanes(x + j);
  double lane[kLane];
  sums.store(lane);
  for (; j < n; ++j) lane[0] += static_cast<double>(x[j]);
  return sum_lanes(lane);
}

inline double largest_of(const double* x, int n) {
  Lanes most;
  for (auto& one : most.vector) one += x[0];
  int j = 0;
  for (; j + kLane <= n; j += kLane) most.raise(load_lanes(x + j));
  double lane[kLane];
  most.store(lane);
  for (; j < n; ++j) lane[0] = x[j] > lane[0] ? x[j] : lane[0];
  double largest = lane[0];
  for (int l = 1; l < kLane; ++l) largest = lane[l] > largest ? lane[l] : largest;
  return largest;
}

}  // namespace
}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
