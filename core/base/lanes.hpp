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

// Written with vector types: left to itself, the compiler adds up the lanes one by one. Their number is the same for
// all instruction sets: it is an order of summing.
constexpr int kFloats = 16;
typedef float Floats __attribute__((vector_size(kFloats * 4), aligned(4), may_alias));

inline Floats load_floats(const float* from) { return *reinterpret_cast<const Floats*>(from); }

inline float sum_floats(const Floats& v) {
  typedef float Half __attribute__((vector_size(32)));
  typedef float Quarter __attribute__((vector_size(16)));
  Half halves[2];
  __builtin_memcpy(halves, &v, sizeof halves);
  const Half half = halves[0] + halves[1];
  Quarter quarters[2];
  __builtin_memcpy(quarters, &half, sizeof quarters);
  const Quarter quarter = quarters[0] + quarters[1];
  return (quarter[0] + quarter[1]) + (quarter[2] + quarter[3]);
}

// Lanes as a vector: left to itself, the compiler takes the largest of each of them one by one.
typedef double Lanes __attribute__((vector_size(kLane * 8), aligned(8), may_alias));
typedef float HalfLanes __attribute__((vector_size(kLane * 4), aligned(4), may_alias));

inline Lanes load_lanes(const double* from) { return *reinterpret_cast<const Lanes*>(from); }
inline Lanes load_lanes(const float* from) {
  return __builtin_convertvector(*reinterpret_cast<const HalfLanes*>(from), Lanes);
}

// In lanes, so that one addition or comparison does not wait for the one before.
template <class Number>
inline double sum_of(const Number* x, int n) {
  Lanes sums = {0};
  int j = 0;
  for (; j + kLane <= n; j += kLane) sums += load_lanes(x + j);
  double lane[kLane];
  __builtin_memcpy(lane, &sums, sizeof lane);
  for (; j < n; ++j) lane[0] += static_cast<double>(x[j]);
  return sum_lanes(lane);
}

inline double largest_of(const double* x, int n) {
  Lanes most = Lanes{} + x[0];
  int j = 0;
  for (; j + kLane <= n; j += kLane) {
    const Lanes next = load_lanes(x + j);
    most = next > most ? next : most;
  }
  double lane[kLane];
  __builtin_memcpy(lane, &most, sizeof lane);
  for (; j < n; ++j) lane[0] = x[j] > lane[0] ? x[j] : lane[0];
  double largest = lane[0];
  for (int l = 1; l < kLane; ++l) largest = lane[l] > largest ? lane[l] : largest;
  return largest;
}

}  // namespace
}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
