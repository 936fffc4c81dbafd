#include "kernels/cut.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#ifndef POLYLEAF_ISA
#error "POLYLEAF_ISA names the instruction set this file is compiled for"
#endif

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

// Up to this many cuts, comparing many values with one cut after the other is fastest.
constexpr std::size_t kFewCuts = 20;
constexpr std::size_t kRun = 64;  // values compared together

// Which cuts of a line are below a value: since they ascend, the first ones. "Not at or above", so that all are
// below NaN.
#if defined(__AVX512F__)

struct FloatLine {
  __m512 cuts;
  explicit FloatLine(const float* line) : cuts(_mm512_load_ps(line)) {}
  std::size_t count_below(float value) const {
    return static_cast<std::size_t>(__builtin_popcount(_mm512_cmp_ps_mask(_mm512_set1_ps(value), cuts, _CMP_NLE_UQ)));
  }
};

struct DoubleLine {
  __m512d cuts[2];
  explicit DoubleLine(const double* line) : cuts{_mm512_load_pd(line), _mm512_load_pd(line + 8)} {}
  std::size_t count_below(double value) const {
    const __m512d v = _mm512_set1_pd(value);
    const unsigned first = _mm512_cmp_pd_mask(v, cuts[0], _CMP_NLE_UQ);
    const unsigned second = _mm512_cmp_pd_mask(v, cuts[1], _CMP_NLE_UQ);
    return static_cast<std::size_t>(__builtin_popcount(first | second << 8));
  }
};

#elif defined(__AVX2__)

struct FloatLine {
  __m256 cuts[2];
  explicit FloatLine(const float* line) : cuts{_mm256_load_ps(line), _mm256_load_ps(line + 8)} {}
  std::size_t count_below(float value) const {
    const __m256 v = _mm256_set1_ps(value);
    const int first = _mm256_movemask_ps(_mm256_cmp_ps(v, cuts[0], _CMP_NLE_UQ));
    const int second = _mm256_movemask_ps(_mm256_cmp_ps(v, cuts[1], _CMP_NLE_UQ));
    return static_cast<std::size_t>(__builtin_popcount(static_cast<unsigned>(first | second << 8)));
  }
};

struct DoubleLine {
  __m256d cuts[4];
  explicit DoubleLine(const double* line)
      : cuts{_mm256_load_pd(line), _mm256_load_pd(line + 4), _mm256_load_pd(line + 8), _mm256_load_pd(line + 12)} {}
  std::size_t count_below(double value) const {
    const __m256d v = _mm256_set1_pd(value);
    unsigned below = 0;
    for (int i = 0; i < 4; ++i)
      below |= static_cast<unsigned>(_mm256_movemask_pd(_mm256_cmp_pd(v, cuts[i], _CMP_NLE_UQ))) << (4 * i);
    return static_cast<std::size_t>(__builtin_popcount(below));
  }
};

#elif defined(__SSE2__)

struct FloatLine {
  __m128i cuts[4];
  explicit FloatLine(const float* line) {
    for (int i = 0; i < 4; ++i) cuts[i] = _mm_castps_si128(_mm_load_ps(line + 4 * i));
  }
  std::size_t count_below(float value) const {
    const __m128 v = _mm_set1_ps(value);
    const auto compare = [&](int i) { return _mm_castps_si128(_mm_cmpnle_ps(v, _mm_castsi128_ps(cuts[i]))); };
    const __m128i first = _mm_packs_epi32(compare(0), compare(1));
    const __m128i second = _mm_packs_epi32(compare(2), compare(3));
    const int below = _mm_movemask_epi8(_mm_packs_epi16(first, second));
    return static_cast<std::size_t>(__builtin_ctz(~static_cast<unsigned>(below)));
  }
};

struct DoubleLine {
  const double* cuts;
  explicit DoubleLine(const double* line) : cuts(line) {}
  std::size_t count_below(double value) const {
    const __m128d v = _mm_set1_pd(value);
    const auto compare = [&](int i) { return _mm_castpd_si128(_mm_cmpnle_pd(v, _mm_load_pd(cuts + 2 * i))); };
    const auto half = [&](int i) {  // two bits for each of eight cuts
      const __m128i first = _mm_packs_epi32(compare(i), compare(i + 1));
      const __m128i second = _mm_packs_epi32(compare(i + 2), compare(i + 3));
      return static_cast<std::uint64_t>(static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(first, second))));
    };
    return static_cast<std::size_t>(__builtin_ctzll(~(half(0) | half(4) << 16))) / 2;
  }
};

#else

template <class Real>
struct PlainLine {
  const Real* cuts;
  explicit PlainLine(const Real* line) : cuts(line) {}
  std::size_t count_below(Real value) const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < kCutLine; ++i) count += !(value <= cuts[i]) ? 1 : 0;
    return count;
  }
};
using FloatLine = PlainLine<float>;
using DoubleLine = PlainLine<double>;

#endif

// The number of ascending cuts below the value, without branches on the data.
template <class Real>
std::size_t count_sorted(const Real* cuts, std::size_t size, Real value) {
  const Real* first = cuts;
  while (size > 0) {
    const std::size_t half = (size + 1) / 2;
    first += !(value <= first[half - 1]) ? half : 0;
    size -= half;
  }
  return static_cast<std::size_t>(first - cuts);
}

// Compares every value with each cut. Count has the size of Real.
template <class Count, class Real>
void count_each(const Real* cuts, std::size_t n_cuts, const Real* values, std::size_t count, std::uint16_t* bins) {
  for (std::size_t begin = 0; begin < count; begin += kRun) {
    const std::size_t n = kRun < count - begin ? kRun : count - begin;
    Real run[kRun];
    Count below[kRun];
    for (std::size_t i = 0; i < kRun; ++i) run[i] = i < n ? values[begin + i] : Real{0};
    for (std::size_t i = 0; i < kRun; ++i) below[i] = 0;
    for (std::size_t c = 0; c < n_cuts; ++c)
      for (std::size_t i = 0; i < kRun; ++i) below[i] += !(run[i] <= cuts[c]) ? 1 : 0;
    for (std::size_t i = 0; i < n; ++i) bins[begin + i] = static_cast<std::uint16_t>(below[i]);
  }
}

template <class Line, class Count, class Real>
void find(const CutLines<Real>& cuts, const Real* values, std::size_t count, std::uint16_t* bins) {
  const std::size_t missing = cuts.n_cuts + 1;  // infinity follows the cuts, and NaN is counted as above it
  if (missing <= kFewCuts) {
    count_each<Count>(cuts.lines, missing, values, count, bins);
    return;
  }
  const auto in_line = [&](std::size_t line, Real value) {
    const std::size_t first = line * kCutLine;
    const std::size_t bin = first + Line(cuts.lines + first).count_below(value);
    return static_cast<std::uint16_t>(bin < missing ? bin : missing);
  };
  if (cuts.n_lines <= kCutLine) {
    const Line lasts(cuts.lasts);
    for (std::size_t i = 0; i < count; ++i) bins[i] = in_line(lasts.count_below(values[i]), values[i]);
  } else {
    for (std::size_t i = 0; i < count; ++i)
      bins[i] = in_line(count_sorted(cuts.lasts, cuts.n_lines - 1, values[i]), values[i]);
  }
}

}  // namespace

extern const CutKernels kCutKernels;
const CutKernels kCutKernels = {find<FloatLine, std::int32_t, float>, find<DoubleLine, std::int64_t, double>};

}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
