#include "kernels/gradient.hpp"

#include "base/lanes.hpp"
#include "base/rounding.hpp"
#include "kernels/with_term.hpp"
#include "rules/exponential.hpp"

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

inline double from_bits(std::int64_t bits) {
  double x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

// Sums of one row with up to kColumns columns of the matrix, which are padded with zeros to whole vectors.
constexpr int kColumns = 8;

template <int Columns>
void project_row(const float* values, int n, const float* columns, std::size_t stride, float* out) {
  Floats sum[Columns] = {};
  int j = 0;
  for (; j + kFloats <= n; j += kFloats) {
    const Floats v = load_floats(values + j);
    for (int c = 0; c < Columns; ++c) sum[c] += v * load_floats(columns + static_cast<std::size_t>(c) * stride + j);
  }
  if (j < n) {
    float rest[kFloats] = {0};
    for (int l = 0; l < n - j; ++l) rest[l] = values[j + l];
    const Floats v = load_floats(rest);
    for (int c = 0; c < Columns; ++c) sum[c] += v * load_floats(columns + static_cast<std::size_t>(c) * stride + j);
  }
  for (int c = 0; c < Columns; ++c) out[c] = sum_floats(sum[c]);
}

void project(const float* values, std::size_t stride, std::size_t begin, std::size_t end, int n, const float* matrix,
             std::size_t matrix_stride, int n_columns, float* out) {
  for (std::size_t row = begin; row < end; ++row) {
    const float* v = values + row * stride;
    float* to = out + row * static_cast<std::size_t>(n_columns);
    int c = 0;
    for (; c + kColumns <= n_columns; c += kColumns)
      project_row<kColumns>(v, n, matrix + static_cast<std::size_t>(c) * matrix_stride, matrix_stride, to + c);
    for (; c + 5 <= n_columns; c += 5)
      project_row<5>(v, n, matrix + static_cast<std::size_t>(c) * matrix_stride, matrix_stride, to + c);
    for (; c < n_columns; ++c)
      project_row<1>(v, n, matrix + static_cast<std::size_t>(c) * matrix_stride, matrix_stride, to + c);
  }
}

template <Term kind>
void sum_of_rows(const float* values, std::size_t stride, std::size_t begin, std::size_t end, int n,
                 const double* weight, double* out) {
  const auto term = [&](const float* v, int j) { return weight[j] * term_of(kind, static_cast<double>(v[j])); };
  for (std::size_t row = begin; row < end; ++row) {
    const float* v = values + row * stride;
    double lane[kLane] = {0};
    int j = 0;
    for (; j + kLane <= n; j += kLane)
      for (int l = 0; l < kLane; ++l) lane[l] += term(v, j + l);
    for (; j < n; ++j) lane[0] += term(v, j);
    out[row] = sum_lanes(lane);
  }
}

void weighted_sums(const float* values, std::size_t stride, std::size_t begin, std::size_t end, int n,
                   const double* weight, Term term, double* out) {
  with_term(term, [&](auto kind) { sum_of_rows<kind.value>(values, stride, begin, end, n, weight, out); });
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
void softmax_few(const double* raw, const std::int32_t* label, std::size_t begin, std::size_t end, int n_outputs,
                 float* gradient, float* hessian) {
  constexpr std::size_t kNumbers = 512;
  double x[kNumbers], inverse[kNumbers];  // the latter once for each output
  float e[kNumbers];
  const auto d = static_cast<std::size_t>(n_outputs);
  const std::size_t n_together = kNumbers / d;
  for (std::size_t first = begin; first < end; first += n_together) {
    const std::size_t n_rows = end - first < n_together ? end - first : n_together;
    const std::size_t n = n_rows * d;
    const double* from = raw + first * d;
    for (std::size_t r = 0; r < n_rows; ++r) {
      const double largest = largest_of(from + r * d, n_outputs);
      for (std::size_t j = r * d; j < (r + 1) * d; ++j) x[j] = from[j] - largest;
    }
    for (std::size_t i = 0; i < n; ++i) e[i] = exponential_of_loss(x[i]);
    for (std::size_t r = 0; r < n_rows; ++r) {
      const double of_row = 1.0 / sum_of(e + r * d, n_outputs);
      for (std::size_t j = r * d; j < (r + 1) * d; ++j) inverse[j] = of_row;
    }
    float* g = gradient + first * d;
    float* h = Stored ? hessian + first * d : nullptr;
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
void softmax_rows(const double* raw, const std::int32_t* label, std::size_t begin, std::size_t end, int n_outputs,
                  float* gradient, float* hessian) {
  if (n_outputs <= kFewOutputs) return softmax_few<kind, Stored>(raw, label, begin, end, n_outputs, gradient, hessian);
  constexpr int kChunk = 1024;
  float e[kChunk];
  const auto d = static_cast<std::size_t>(n_outputs);
  for (std::size_t row = begin; row < end; ++row) {
    const double* x = raw + row * d;
    float* g = gradient + row * d;
    float* h = Stored ? hessian + row * d : nullptr;
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

void softmax(const double* raw, const std::int32_t* label, Term kind, std::size_t begin, std::size_t end, int n_outputs,
             float* gradient, float* hessian) {
  if (hessian == nullptr)
    softmax_rows<Term::kPaper, false>(raw, label, begin, end, n_outputs, gradient, hessian);
  else if (kind == Term::kAbsolute)
    softmax_rows<Term::kAbsolute, true>(raw, label, begin, end, n_outputs, gradient, hessian);
  else if (kind == Term::kTwice)
    softmax_rows<Term::kTwice, true>(raw, label, begin, end, n_outputs, gradient, hessian);
  else
    softmax_rows<Term::kPaper, true>(raw, label, begin, end, n_outputs, gradient, hessian);
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

void logistic(const double* raw, const double* label, std::size_t begin, std::size_t end, float* gradient,
              float* hessian) {
  for (std::size_t i = begin; i < end; ++i) {
    const double p = sigmoid(raw[i]);
    gradient[i] = static_cast<float>(p - label[i]);
    if (hessian != nullptr) hessian[i] = static_cast<float>(p * (1.0 - p));
  }
}

}  // namespace

extern const GradientKernels kGradientKernels;
const GradientKernels kGradientKernels = {project, weighted_sums, softmax, logistic, softmax_shares, sigmoids};

}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
