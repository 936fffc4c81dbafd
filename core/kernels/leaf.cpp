#include "kernels/leaf.hpp"

#include "base/row_vector.hpp"
#include "kernels/with_term.hpp"

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

void add_leaves(const std::uint32_t* leaf, const float* values, const double* unit, std::size_t begin, std::size_t end,
                int n, double* raw) {
  const auto d = static_cast<std::size_t>(n);
  for (std::size_t row = begin; row < end; ++row) {
    const float* value = values + leaf[row] * d;
    double* to = raw + row * d;
    for (std::size_t j = 0; j < d; ++j) to[j] += unit[j] * static_cast<double>(value[j]);
  }
}

void add_to_rows(const double* value, int n, const std::uint32_t* rows, std::size_t n_rows, std::size_t stride,
                 double* out) {
  for (std::size_t i = 0; i < n_rows; ++i) {
    if (i + kAhead < n_rows) __builtin_prefetch(out + rows[i + kAhead] * stride);
    double* row = out + rows[i] * stride;
    for (int j = 0; j < n; ++j) row[j] += value[j];
  }
}

// Adds rows one after the other to numbers that stay in registers meanwhile.
// `next`: rows to be fetched on the way; null where there are none.
template <Term kind, bool Sums, bool Terms, bool Weighted, int Rows>
void sum_few_rows(const float* const* row, const double* weight, const float* const* next, int n_outputs, double* sums,
                  double* terms) {
  constexpr int kLineFloats = 16, kChunk = 64;
  for (int from = 0; from < n_outputs; from += kChunk) {
    const int to = n_outputs - from < kChunk ? n_outputs : from + kChunk;
    for (int r = 0; r < Rows; ++r)
      if (next[r] != nullptr)
        for (int j = from; j < to; j += kLineFloats) __builtin_prefetch(next[r] + j, 0, 2);
    for (int j = from; j < to; ++j) {
      double sum = Sums ? sums[j] : 0.0, term = Terms ? terms[j] : 0.0;
      for (int r = 0; r < Rows; ++r) {
        const double x = row[r][j];
        if (Sums) sum += Weighted ? weight[r] * x : x;
        if (Terms) term += Weighted ? weight[r] * term_of(kind, x) : term_of(kind, x);
      }
      if (Sums) sums[j] = sum;
      if (Terms) terms[j] = term;
    }
  }
}

template <Term kind, bool Sums, bool Terms, bool Weighted>
void sum_weighted_rows(const float* values, std::size_t stride, const double* weight, const std::uint32_t* rows,
                       std::size_t n_rows, int n_outputs, double* sums, double* terms) {
  constexpr int kTogether = 4;
  const float* row[kTogether];
  const float* next[kTogether];
  double w[kTogether] = {1.0, 1.0, 1.0, 1.0};
  std::size_t i = 0;
  const auto take = [&](int n) {
    for (int r = 0; r < n; ++r) {
      next[r] = i + r + kAhead < n_rows ? values + rows[i + r + kAhead] * stride : nullptr;
      row[r] = values + rows[i + r] * stride;
      if (Weighted) w[r] = weight[rows[i + r]];
    }
  };
  for (; i + kTogether <= n_rows; i += kTogether) {
    take(kTogether);
    sum_few_rows<kind, Sums, Terms, Weighted, kTogether>(row, w, next, n_outputs, sums, terms);
  }
  for (; i < n_rows; ++i) {
    take(1);
    sum_few_rows<kind, Sums, Terms, Weighted, 1>(row, w, next, n_outputs, sums, terms);
  }
}

template <Term kind, bool Sums, bool Terms>
void sum_some_rows(const float* values, std::size_t stride, const double* weight, const std::uint32_t* rows,
                   std::size_t n_rows, int n_outputs, double* sums, double* terms) {
  if (weight == nullptr)
    sum_weighted_rows<kind, Sums, Terms, false>(values, stride, weight, rows, n_rows, n_outputs, sums, terms);
  else
    sum_weighted_rows<kind, Sums, Terms, true>(values, stride, weight, rows, n_rows, n_outputs, sums, terms);
}

void sum_rows(const float* values, std::size_t stride, const double* weight, const std::uint32_t* rows,
              std::size_t n_rows, int n_outputs, double* sums, Term term, double* terms) {
  if (terms == nullptr)
    return sum_some_rows<Term::kItself, true, false>(values, stride, weight, rows, n_rows, n_outputs, sums, terms);
  with_term(term, [&](auto kind) {
    if (sums == nullptr)
      sum_some_rows<kind.value, false, true>(values, stride, weight, rows, n_rows, n_outputs, sums, terms);
    else
      sum_some_rows<kind.value, true, true>(values, stride, weight, rows, n_rows, n_outputs, sums, terms);
  });
}

}  // namespace

extern const LeafKernels kLeafKernels;
const LeafKernels kLeafKernels = {add_leaves, add_to_rows, sum_rows};

}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
