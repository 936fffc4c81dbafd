#include "kernels/gradient.hpp"

#include <type_traits>

#include "base/lanes.hpp"
#include "kernels/with_term.hpp"
#include "rules/exponential.hpp"
#include "rules/rounding.hpp"

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

inline double from_bits(std::int64_t bits) {
  double x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

// Sums of one row with up to kTogether columns, which are padded with zeros to whole vectors.
constexpr int kTogether = 8;

// The first numbers of a vector, and 0 for the others. `readable`: so many may be read, if only the first count.
inline Floats first_floats(const float* from, int n, std::size_t readable) {
  typedef std::int32_t Numbers __attribute__((vector_size(Floats::kWidth), aligned(4), may_alias));
  static constexpr std::int32_t kNumbers[kFloats] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  if (readable >= static_cast<std::size_t>(kFloats)) {
    Floats out = load_floats(from);
    for (int v = 0; v < Floats::kVectors; ++v) {
      const Numbers number = *reinterpret_cast<const Numbers*>(kNumbers + v * Floats::kPerVector);
      out.vector[v] = number < n ? out.vector[v] : Floats::Vector{};
    }
    return out;
  }
  float first[kFloats] = {0};
  for (int l = 0; l < n; ++l) first[l] = from[l];
  return load_floats(first);
}

// `readable`: numbers from the first of the row on.
template <int Count>
void project_row(const float* values, int n, std::size_t readable, const float* columns, std::size_t stride,
                 float* out) {
  Floats sum[Count] = {};
  int j = 0;
  for (; j + kFloats <= n; j += kFloats) {
    const Floats v = load_floats(values + j);
    for (int c = 0; c < Count; ++c) sum[c] += v * load_floats(columns + static_cast<std::size_t>(c) * stride + j);
  }
  if (j < n) {
    const Floats v = first_floats(values + j, n - j, readable - static_cast<std::size_t>(j));
    for (int c = 0; c < Count; ++c) sum[c] += v * load_floats(columns + static_cast<std::size_t>(c) * stride + j);
  }
  for (int c = 0; c < Count; ++c) out[c] = sum_floats(sum[c]);
}

void project(const FloatRows& rows, const Columns& columns, float* out) {
  const auto column = [&](int c) { return columns.data + static_cast<std::size_t>(c) * columns.stride; };
  for (std::size_t row = rows.begin; row < rows.end; ++row) {
    const float* v = rows.row(row);
    float* to = out + row * static_cast<std::size_t>(columns.count);
    const std::size_t readable = (rows.end - row - 1) * rows.stride + static_cast<std::size_t>(rows.n);
    int c = 0;
    const auto take = [&](auto count) {
      for (; c + count <= columns.count; c += count)
        project_row<count.value>(v, rows.n, readable, column(c), columns.stride, to + c);
    };
    take(std::integral_constant<int, kTogether>());
    take(std::integral_constant<int, 5>());
    take(std::integral_constant<int, 2>());
    take(std::integral_constant<int, 1>());
  }
}

template <Term kind>
void sum_of_rows(const FloatRows& rows, const double* weight, double* out) {
  const int n = rows.n;
  const auto term = [&](const float* v, int j) { return weight[j] * term_of(kind, static_cast<double>(v[j])); };
  for (std::size_t row = rows.begin; row < rows.end; ++row) {
    const float* v = rows.row(row);
    double lane[kLane] = {0};
    int j = 0;
    for (; j + kLane <= n; j += kLane)
      for (int l = 0; l < kLane; ++l) lane[l] += term(v, j + l);
    for (; j < n; ++j) lane[0] += term(v, j);
    out[row] = sum_lanes(lane);
  }
}

void weighted_sums(const FloatRows& rows, const double* weight, Term term, double* out) {
  with_term(term, [&](auto kind) { sum_of_rows<kind.value>(rows, weight, out); });
}

// e^x to about 1e-15 for -700 <= x <= 700 (raised to -700), written so that the compiler vectorises it.
inline double exponential(double x) {
  constexpr double kLog2e = 1.4426950408889634;
  constexpr double kLn2High = 6.93147180369123816490e-01;
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  x = x < -700.0 ? -700.0 : x;
  const double shifted = x * kLog2e + kRounder;
  const double n = shifted - kRounder;
  const double r = (x - n * kLn2High) - n * kLn2Low;
  double p = 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  // n stands in the low bits of `shifted`; added to the exponent of p, which is near 1, it multiplies by 2^n.
  return from_bits(static_cast<std::int64_t>(static_cast<std::uint64_t>(bits_of(p)) +
                                             (static_cast<std::uint64_t>(bits_of(shifted)) << 52)));
}

inline float exponential_of_loss(double x) {
  return polyleaf::exponential_of_loss(x, [](double value) { return static_cast<float>(value); });
}

// e^(x - largest). Meanwhile the scores of later rows are fetched, which otherwise would be waited for.
inline void exponentials(const double* x, double largest, int n, float* out) {
  constexpr int kStep = 64, kLater = 1024;
  int from = 0;
  for (; from + kStep <= n; from += kStep) {
    for (int j = 0; j < kStep; j += 8) __builtin_prefetch(x + from + j + kLater, 1);
    for (int j = 0; j < kStep; ++j) out[from + j] = exponential_of_loss(x[from + j] - largest);
  }
  for (; from < n; ++from) out[from] = exponential_of_loss(x[from] - largest);
}

// Of few outputs, many rows at a time: what is done for each number does not wait for the end of each row.
constexpr int kFewOutputs = 64;

template <Term kind, bool Stored>
void softmax_few(const ScoreBlock& block, const std::int32_t* label) {
  constexpr std::size_t kNumbers = 512;
  double x[kNumbers], inverse[kNumbers];  // the latter once for each output
  float e[kNumbers];
  const int n_outputs = block.n_outputs;
  const auto d = static_cast<std::size_t>(n_outputs);
  const std::size_t n_together = kNumbers / d;
  for (std::size_t first = block.begin; first < block.end; first += n_together) {
    const std::size_t n_rows = block.end - first < n_together ? block.end - first : n_together;
    const std::size_t n = n_rows * d;
    const double* from = block.scores + first * d;
    for (std::size_t r = 0; r < n_rows; ++r) {
      const double largest = largest_of(from + r * d, n_outputs);
      for (std::size_t j = r * d; j < (r + 1) * d; ++j) x[j] = from[j] - largest;
    }
    for (std::size_t i = 0; i < n; ++i) e[i] = exponential_of_loss(x[i]);
    for (std::size_t r = 0; r < n_rows; ++r) {
      const double of_row = 1.0 / sum_of(e + r * d, n_outputs);
      for (std::size_t j = r * d; j < (r + 1) * d; ++j) inverse[j] = of_row;
    }
    float* g = block.gradient + block.place(first);
    float* h = Stored ? block.hessian + block.place(first) : nullptr;
    for (std::size_t i = 0; i < n; ++i) {
      const double p = static_cast<double>(e[i]) * inverse[i];
      g[i] = static_cast<float>(p);
      if (Stored) h[i] = static_cast<float>(curvature(kind, p, 0.0));
    }
    for (std::size_t r = 0; r < n_rows; ++r) {
      const std::size_t y = r * d + static_cast<std::size_t>(label[first + r]);
      const double p = static_cast<double>(e[y]) * inverse[y];
      g[y] = static_cast<float>(p - 1.0);
      if (Stored) h[y] = static_cast<float>(curvature(kind, p, 1.0));
    }
  }
}

template <Term kind, bool Stored>
void softmax_rows(const ScoreBlock& block, const std::int32_t* label) {
  const int n_outputs = block.n_outputs;
  if (n_outputs <= kFewOutputs) return softmax_few<kind, Stored>(block, label);
  constexpr int kChunk = 1024;
  float e[kChunk];
  const auto d = static_cast<std::size_t>(n_outputs);
  for (std::size_t row = block.begin; row < block.end; ++row) {
    const double* x = block.scores + row * d;
    float* g = block.gradient + block.place(row);
    float* h = Stored ? block.hessian + block.place(row) : nullptr;
    const double largest = largest_of(x, n_outputs);
    double sum = 0.0;
    for (int from = 0; from < n_outputs; from += kChunk) {
      const int count = n_outputs - from < kChunk ? n_outputs - from : kChunk;
      exponentials(x + from, largest, count, e);
      sum += sum_of(e, count);
    }
    const double inverse = 1.0 / sum;
    for (int from = 0; from < n_outputs; from += kChunk) {
      const int count = n_outputs - from < kChunk ? n_outputs - from : kChunk;
      if (n_outputs > kChunk) exponentials(x + from, largest, count, e);  // else they are still there
      for (int j = 0; j < count; ++j) {
        const double p = static_cast<double>(e[j]) * inverse;
        g[from + j] = static_cast<float>(p);
        if (Stored) h[from + j] = static_cast<float>(curvature(kind, p, 0.0));
      }
    }
    const int y = label[row];
    const double p = static_cast<double>(exponential_of_loss(x[y] - largest)) * inverse;
    g[y] = static_cast<float>(p - 1.0);
    if (Stored) h[y] = static_cast<float>(curvature(kind, p, 1.0));
  }
}

void softmax(const ScoreBlock& block, const std::int32_t* label, Term kind) {
  if (block.hessian == nullptr)
    softmax_rows<Term::kPaper, false>(block, label);
  else if (kind == Term::kAbsolute)
    softmax_rows<Term::kAbsolute, true>(block, label);
  else if (kind == Term::kTwice)
    softmax_rows<Term::kTwice, true>(block, label);
  else
    softmax_rows<Term::kPaper, true>(block, label);
}

void softmax_shares(const double* raw, std::size_t begin, std::size_t end, int n_outputs, double* out) {
  const auto d = static_cast<std::size_t>(n_outputs);
  for (std::size_t row = begin; row < end; ++row) {
    const double* x = raw + row * d;
    double* share = out + row * d;
    const double largest = largest_of(x, n_outputs);
    for (std::size_t j = 0; j < d; ++j) share[j] = exponential(x[j] - largest);
    const double inverse = 1.0 / sum_of(share, n_outputs);
    for (std::size_t j = 0; j < d; ++j) share[j] *= inverse;
  }
}

// Of numbers below -700 that of -700.
inline double sigmoid(double x) { return 1.0 / (1.0 + exponential(x < -700.0 ? 700.0 : -x)); }

void sigmoids(const double* raw, std::size_t begin, std::size_t end, double* out) {
  for (std::size_t i = begin; i < end; ++i) out[i] = sigmoid(raw[i]);
}

void logistic(const ScoreBlock& block, const double* label) {
  const auto d = static_cast<std::size_t>(block.n_outputs);
  const std::size_t n = (block.end - block.begin) * d;
  const double* raw = block.scores + block.begin * d;
  const double* y = label + block.begin * d;
  float* gradient = block.gradient + block.place(block.begin);
  float* hessian = block.hessian != nullptr ? block.hessian + block.place(block.begin) : nullptr;
  for (std::size_t i = 0; i < n; ++i) {
    const double p = sigmoid(raw[i]);
    gradient[i] = static_cast<float>(p - y[i]);
    if (hessian != nullptr) hessian[i] = static_cast<float>(p * (1.0 - p));
  }
}

}  // namespace

extern const GradientKernels kGradientKernels;
const GradientKernels kGradientKernels = {project, weighted_sums, softmax, logistic, softmax_shares, sigmoids};

}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
