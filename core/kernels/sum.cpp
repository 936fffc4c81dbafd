#include "kernels/sum.hpp"

#include "base/row_vector.hpp"
#include "kernels/with_term.hpp"
#include "rules/exact_sum.hpp"

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

// Of few numbers side by side, without weights: eight rows are one long row, with sums of their own.
constexpr int kFewNumbers = 32;

bool is_few(const WeightedRows& rows) {
  return rows.weight == nullptr && rows.stride == static_cast<std::size_t>(rows.n) && rows.n <= kFewNumbers;
}

void largest_of_few(const WeightedRows& rows, std::size_t begin, std::size_t end, double* largest) {
  const auto n = static_cast<std::size_t>(rows.n) * kLane;
  float most[kFewNumbers * kLane] = {0};
  const float* v = rows.values + begin * rows.stride;
  const auto raise = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const float magnitude = __builtin_fabsf(v[i]);
      most[i] = magnitude > most[i] ? magnitude : most[i];
    }
  };
  for (; begin + kLane <= end; begin += kLane, v += n) raise(n);
  raise((end - begin) * rows.stride);
  for (std::size_t i = 0; i < n; ++i) {
    double& one = largest[i % rows.stride];
    one = static_cast<double>(most[i]) > one ? static_cast<double>(most[i]) : one;
  }
}

void largest_magnitudes(const WeightedRows& rows, std::size_t begin, std::size_t end, double* largest) {
  if (is_few(rows)) return largest_of_few(rows, begin, end, largest);
  for (std::size_t row = begin; row < end; ++row) {
    const float* v = rows.values + row * rows.stride;
    const double w = rows.weight != nullptr ? rows.weight[row] : 1.0;
    if (w == 0.0) continue;
    for (int j = 0; j < rows.n; ++j) {
      const double magnitude = w * __builtin_fabs(static_cast<double>(v[j]));
      largest[j] = magnitude > largest[j] ? magnitude : largest[j];
    }
  }
}

float sum_few_magnitudes(const WeightedRows& rows, std::size_t begin, std::size_t end, const RowSums& sums) {
  const auto n = static_cast<std::size_t>(rows.n) * kLane;
  double coarse[kFewNumbers * kLane] = {0}, fine[kFewNumbers * kLane] = {0};
  double coarse_grid[kFewNumbers * kLane], fine_grid[kFewNumbers * kLane];
  float least[kFewNumbers * kLane] = {0};
  for (std::size_t i = 0; i < n; ++i) {
    coarse_grid[i] = sums.coarse_grid[i % rows.stride];
    fine_grid[i] = sums.fine_grid[i % rows.stride];
  }
  const float* v = rows.values + begin * rows.stride;
  const auto add = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      add_exactly(__builtin_fabs(static_cast<double>(v[i])), coarse_grid[i], fine_grid[i], coarse[i], fine[i]);
      least[i] = v[i] < least[i] ? v[i] : least[i];
    }
  };
  for (; begin + kLane <= end; begin += kLane, v += n) add(n);
  add((end - begin) * rows.stride);
  float smallest = 0.0f;
  for (std::size_t i = 0; i < n; ++i) {
    sums.coarse[i % rows.stride] += coarse[i];
    sums.fine[i % rows.stride] += fine[i];
    smallest = least[i] < smallest ? least[i] : smallest;
  }
  return smallest;
}

float sum_magnitudes(const WeightedRows& rows, std::size_t begin, std::size_t end, const RowSums& sums) {
  if (is_few(rows)) return sum_few_magnitudes(rows, begin, end, sums);
  const double* coarse_grid = sums.coarse_grid;
  const double* fine_grid = sums.fine_grid;
  double* __restrict coarse = sums.coarse;
  double* __restrict fine = sums.fine;
  float least = 0.0f;
  for (std::size_t row = begin; row < end; ++row) {
    const float* v = rows.values + row * rows.stride;
    const double w = rows.weight != nullptr ? rows.weight[row] : 1.0;
    if (w == 0.0) continue;
    for (int j = 0; j < rows.n; ++j) {
      add_exactly(w * __builtin_fabs(static_cast<double>(v[j])), coarse_grid[j], fine_grid[j], coarse[j], fine[j]);
      least = v[j] < least ? v[j] : least;
    }
  }
  return least;
}

// Adds a term of the numbers from .. to of rows, one row after the other, to sums that stay in registers meanwhile.
template <Term kind, bool Weighted, int Rows>
inline void add_rows(const float* const* row, const double* weight, int from, int to, const RowSums& sums) {
  const double* coarse_grid = sums.coarse_grid;
  const double* fine_grid = sums.fine_grid;
  double* __restrict coarse = sums.coarse;
  double* __restrict fine = sums.fine;
  for (int j = from; j < to; ++j) {
    double high = coarse[j], low = fine[j];
    for (int r = 0; r < Rows; ++r) {
      const double x = term_of(kind, row[r][j]);
      add_exactly(Weighted ? weight[r] * x : x, coarse_grid[j], fine_grid[j], high, low);
    }
    coarse[j] = high;
    fine[j] = low;
  }
}

// `next`: rows to be fetched on the way; null where there are none.
template <Term kind, bool Sums, bool Terms, bool Weighted, int Rows>
void sum_few_rows(const float* const* row, const double* weight, const float* const* next, int n, const RowSums& sums,
                  const RowSums& terms) {
  constexpr int kLineFloats = 16, kChunk = 64;
  for (int from = 0; from < n; from += kChunk) {
    const int to = n - from < kChunk ? n : from + kChunk;
    for (int r = 0; r < Rows; ++r)
      if (next[r] != nullptr)
        for (int j = from; j < to; j += kLineFloats) __builtin_prefetch(next[r] + j, 0, 2);
    if (Sums) add_rows<Term::kItself, Weighted, Rows>(row, weight, from, to, sums);
    if (Terms) add_rows<kind, Weighted, Rows>(row, weight, from, to, terms);
  }
}

template <Term kind, bool Sums, bool Terms, bool Weighted>
void sum_weighted_rows(const WeightedRows& rows, const std::uint32_t* some, std::size_t n_some, const RowSums& sums,
                       const RowSums& terms) {
  constexpr int kTogether = 4;
  const float* row[kTogether];
  const float* next[kTogether];
  double w[kTogether] = {1.0, 1.0, 1.0, 1.0};
  std::size_t i = 0;
  const auto take = [&](int n) {
    for (int r = 0; r < n; ++r) {
      next[r] = i + r + kAhead < n_some ? rows.values + some[i + r + kAhead] * rows.stride : nullptr;
      row[r] = rows.values + some[i + r] * rows.stride;
      if (Weighted) w[r] = rows.weight[some[i + r]];
    }
  };
  for (; i + kTogether <= n_some; i += kTogether) {
    take(kTogether);
    sum_few_rows<kind, Sums, Terms, Weighted, kTogether>(row, w, next, rows.n, sums, terms);
  }
  for (; i < n_some; ++i) {
    take(1);
    sum_few_rows<kind, Sums, Terms, Weighted, 1>(row, w, next, rows.n, sums, terms);
  }
}

template <Term kind, bool Sums, bool Terms>
void sum_some_rows(const WeightedRows& rows, const std::uint32_t* some, std::size_t n_some, const RowSums& sums,
                   const RowSums& terms) {
  if (rows.weight == nullptr)
    sum_weighted_rows<kind, Sums, Terms, false>(rows, some, n_some, sums, terms);
  else
    sum_weighted_rows<kind, Sums, Terms, true>(rows, some, n_some, sums, terms);
}

void sum_rows(const WeightedRows& rows, const std::uint32_t* some, std::size_t n_some, const RowSums* sums, Term term,
              const RowSums* terms) {
  if (terms == nullptr) return sum_some_rows<Term::kItself, true, false>(rows, some, n_some, *sums, *sums);
  with_term(term, [&](auto kind) {
    if (sums == nullptr)
      sum_some_rows<kind.value, false, true>(rows, some, n_some, *terms, *terms);
    else
      sum_some_rows<kind.value, true, true>(rows, some, n_some, *sums, *terms);
  });
}

}  // namespace

extern const SumKernels kSumKernels;
const SumKernels kSumKernels = {largest_magnitudes, sum_magnitudes, sum_rows};

}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
