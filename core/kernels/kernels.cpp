#include "kernels/kernels.hpp"

#include "base/rounding.hpp"
#include "base/row_vector.hpp"
#include "rules/exponential.hpp"
#include "rules/scoring.hpp"

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

inline double from_bits(std::int64_t bits) {
  double x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

constexpr int kMaxWidth = 32;

inline double sum_lanes(const double* lane) {
  return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

// The totals of a node as float64, padded to whole lanes.
struct Totals {
  double gradient[kMaxWidth + kLane];
  double hessian[kMaxWidth + kLane];
};

template <bool HasAlpha, bool Moderate>
void add_diagonal(const ScanTile& t, const Totals& total, const std::int32_t* left, double* score,
                  double* left_weight) {
  double lane[kLane] = {0};
  double weight[kLane] = {0};
  for (int j = 0; j < t.n_outputs; j += kLane) {
    for (int l = 0; l < kLane; ++l) {
      double gl = left[j + l];
      double gr = total.gradient[j + l] - gl;
      const double hl = left[t.hessian_channel + j + l];
      const double hr = total.hessian[j + l] - hl;
      if (HasAlpha) {
        gl = soft_threshold(gl, t.alpha[j + l]);
        gr = soft_threshold(gr, t.alpha[j + l]);
      }
      const double dl = hl * t.hessian_unit[j + l] + t.lambda[j + l];
      const double dr = hr * t.hessian_unit[j + l] + t.lambda[j + l];
      lane[l] += t.factor[j + l] * (Moderate ? score_terms(gl, dl, gr, dr) : score_term(gl, dl) + score_term(gr, dr));
      weight[l] += hl * t.hessian_unit[j + l];
    }
  }
  *score += sum_lanes(lane);
  if (left_weight != nullptr) *left_weight += sum_lanes(weight);
}

template <bool HasAlpha>
void add_shared(const ScanTile& t, const Totals& total, const std::int32_t* left, double inverse_left,
                double inverse_right, double* score) {
  double lane_left[kLane] = {0};
  double lane_right[kLane] = {0};
  for (int j = 0; j < t.n_outputs; j += kLane) {
    for (int l = 0; l < kLane; ++l) {
      double gl = left[j + l];
      double gr = total.gradient[j + l] - gl;
      if (HasAlpha) {
        gl = soft_threshold(gl, t.alpha[j + l]);
        gr = soft_threshold(gr, t.alpha[j + l]);
      }
      lane_left[l] += t.factor[j + l] * (gl * gl);
      lane_right[l] += t.factor[j + l] * (gr * gr);
    }
  }
  *score += sum_lanes(lane_left) * inverse_left + sum_lanes(lane_right) * inverse_right;
}

template <bool HasAlpha, bool Moderate>
void scan_candidates(const ScanTile& t) {
  // Reads of whole lanes may run past the channels that count; the padding of `factor` and `lambda` makes them 0.
  alignas(64) std::int32_t prefix[kMaxWidth + 2 * kLane] = {0};
  alignas(64) std::int32_t with_missing[kMaxWidth + 2 * kLane] = {0};
  Totals total;
  for (int j = 0; j < kMaxWidth + kLane; ++j) {
    total.gradient[j] = j < t.n_outputs ? t.totals[j] : 0;
    total.hessian[j] = j < t.n_outputs && t.inverse_left == nullptr ? t.totals[t.hessian_channel + j] : 0;
  }
  alignas(64) std::int32_t missing_sum[kMaxWidth] = {0};
  const std::int32_t* missing = t.missing;
  if (t.histogram == nullptr) {
    sum_rows_of_payload(t.payload, t.width, t.order + (t.n_rows - t.n_missing), t.n_missing, missing_sum);
    missing = missing_sum;
  }
  std::uint32_t row = 0;
  for (std::size_t s = 0; s < t.n_steps; ++s) {
    if (t.histogram != nullptr) {
      const std::int32_t* bin = t.histogram + t.steps[s].slot * static_cast<std::size_t>(t.width);
      for (int c = 0; c < t.width; ++c) prefix[c] += bin[c];
    } else {
      sum_rows_of_payload(t.payload, t.width, t.order + row, t.steps[s].rows_end - row, prefix);
      row = t.steps[s].rows_end;
    }
    for (int direction = 0; direction < 2; ++direction) {
      if (!(direction == 0 ? t.steps[s].right_allowed : t.steps[s].left_allowed)) continue;
      const std::int32_t* left = prefix;
      if (direction == 1) {
        for (int c = 0; c < t.width; ++c) with_missing[c] = prefix[c] + missing[c];
        left = with_missing;
      }
      const std::size_t at = 2 * s + static_cast<std::size_t>(direction);
      if (t.inverse_left != nullptr)
        add_shared<HasAlpha>(t, total, left, t.inverse_left[at], t.inverse_right[at], t.score + at);
      else
        add_diagonal<HasAlpha, Moderate>(t, total, left, t.score + at,
                                         t.left_weight != nullptr ? t.left_weight + at : nullptr);
    }
  }
}

void scan(const ScanTile& t) {
  if (t.has_alpha)
    t.moderate ? scan_candidates<true, true>(t) : scan_candidates<true, false>(t);
  else
    t.moderate ? scan_candidates<false, true>(t) : scan_candidates<false, false>(t);
}

// Sums and terms in float32. Written with vector types: left to itself, the compiler adds up the lanes one by one.
// Reads of whole vectors run past the channels that count; a factor of 0 makes them nothing.
constexpr int kFloats = 16;
typedef float Floats __attribute__((vector_size(kFloats * 4), aligned(4), may_alias));
typedef std::uint32_t Integers __attribute__((vector_size(kFloats * 4), aligned(4), may_alias));  // may wrap

inline Integers load_integers(const std::int32_t* from) { return *reinterpret_cast<const Integers*>(from); }
inline Floats load_floats(const float* from) { return *reinterpret_cast<const Floats*>(from); }

typedef std::int32_t SignedIntegers __attribute__((vector_size(kFloats * 4), aligned(4), may_alias));

inline Floats to_floats(const Integers& v) { return __builtin_convertvector((SignedIntegers)v, Floats); }

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

// Gradients of up to V vectors of outputs and, unless they share one, their Hessians.
template <int V, bool Shared>
struct OutputSums {
  Integers gradient[V];
  Integers hessian[Shared ? 1 : V];

  OutputSums() : gradient{}, hessian{} {}
  OutputSums(const std::int32_t* channels, int hessian_channel) : OutputSums() { add(channels, hessian_channel); }
  void add(const std::int32_t* channels, int hessian_channel) {
    for (int v = 0; v < V; ++v) gradient[v] += load_integers(channels + v * kFloats);
    if (!Shared)
      for (int v = 0; v < V; ++v) hessian[v] += load_integers(channels + hessian_channel + v * kFloats);
  }
  OutputSums operator+(const OutputSums& other) const {
    OutputSums sums = *this;
    for (int v = 0; v < V; ++v) sums.gradient[v] += other.gradient[v];
    if (!Shared)
      for (int v = 0; v < V; ++v) sums.hessian[v] += other.hessian[v];
    return sums;
  }
};

// 1 / (H + lambda) of both sides, where all outputs share H.
struct Inverse {
  float left;
  float right;
};

template <int V, bool Shared>
inline float estimate_one(const ScanTile& t, const OutputSums<V, Shared>& total, const OutputSums<V, Shared>& left,
                          const Inverse& inverse) {
  Floats sum_left = {0};
  Floats sum_right = {0};
  for (int v = 0; v < V; ++v) {
    const Floats factor = load_floats(t.factor32 + v * kFloats);
    const Floats gl = to_floats(left.gradient[v]);
    const Floats gr = to_floats(total.gradient[v] - left.gradient[v]);
    if (Shared) {
      sum_left += factor * gl * gl;
      sum_right += factor * gr * gr;
    } else {
      const Floats unit = load_floats(t.hessian_unit32 + v * kFloats);
      const Floats lambda = load_floats(t.lambda32 + v * kFloats);
      const Floats dl = to_floats(left.hessian[v]) * unit + lambda;
      const Floats dr = to_floats(total.hessian[v] - left.hessian[v]) * unit + lambda;
      sum_left += factor * ((gl * gl * dr + gr * gr * dl) / (dl * dr));
    }
  }
  if (!Shared) return sum_floats(sum_left);
  return sum_floats(sum_left * inverse.left + sum_right * inverse.right);
}

template <int V, bool Shared>
float estimate_steps(const ScanTile& t) {
  const OutputSums<V, Shared> total(t.totals, t.hessian_channel);
  const auto width = static_cast<std::size_t>(t.width);
  OutputSums<V, Shared> missing;
  if (t.histogram == nullptr)
    for (std::uint32_t i = t.n_rows - t.n_missing; i < t.n_rows; ++i)
      missing.add(t.payload + t.order[i] * width, t.hessian_channel);
  else if (t.missing != nullptr)
    missing.add(t.missing, t.hessian_channel);
  OutputSums<V, Shared> prefix;
  float highest = 0.0f;
  const auto add = [&](const OutputSums<V, Shared>& left, std::size_t at) {
    Inverse inverse{};
    if (Shared) inverse = {static_cast<float>(t.inverse_left[at]), static_cast<float>(t.inverse_right[at])};
    const float estimated = t.estimated[at] + estimate_one(t, total, left, inverse);
    t.estimated[at] = estimated;
    highest = estimated > highest ? estimated : highest;
  };
  std::uint32_t row = 0;
  for (std::size_t s = 0; s < t.n_steps; ++s) {
    const Step& step = t.steps[s];
    if (t.histogram != nullptr)
      prefix.add(t.histogram + step.slot * width, t.hessian_channel);
    else
      for (; row < step.rows_end; ++row) prefix.add(t.payload + t.order[row] * width, t.hessian_channel);
    if (step.right_allowed) add(prefix, 2 * s);
    if (!step.left_allowed) continue;
    add(prefix + missing, 2 * s + 1);
  }
  return highest;
}

float estimate(const ScanTile& t) {
  const bool one = t.n_outputs <= kFloats;
  if (t.inverse_left != nullptr) return one ? estimate_steps<1, true>(t) : estimate_steps<2, true>(t);
  return one ? estimate_steps<1, false>(t) : estimate_steps<2, false>(t);
}

// What no split behind any of some bins in a row can exceed, after the bins before them: a score is convex in the
// gradient, and both sides weigh at least as much as the left one does after the first bin, the right one after the
// last.
template <int V, bool Shared>
inline float bound_of_bins(const ScanTile& t, const OutputSums<V, Shared>& total, const OutputSums<V, Shared>& first,
                           const OutputSums<V, Shared>& last, const SignedIntegers* lowest,
                           const SignedIntegers* highest, const Inverse& inverse) {
  Floats sum = {0};
  for (int v = 0; v < V; ++v) {
    const Floats factor = load_floats(t.factor32 + v * kFloats);
    Floats left, right;  // what squares of gradients are multiplied by
    if (Shared) {
      left = Floats{} + inverse.left;
      right = Floats{} + inverse.right;
    } else {
      const Floats unit = load_floats(t.hessian_unit32 + v * kFloats);
      const Floats lambda = load_floats(t.lambda32 + v * kFloats);
      right = to_floats(first.hessian[v]) * unit + lambda;
      left = to_floats(total.hessian[v] - last.hessian[v]) * unit + lambda;
    }
    const auto term = [&](const SignedIntegers& of_left) {
      const Floats gl = to_floats((Integers)of_left);
      const Floats gr = to_floats(total.gradient[v] - (Integers)of_left);
      return gl * gl * left + gr * gr * right;
    };
    const Floats low = term(lowest[v]);
    const Floats high = term(highest[v]);
    const Floats larger = low > high ? low : high;
    sum += factor * (Shared ? larger : larger / (left * right));
  }
  return sum_floats(sum);
}

// The candidates of a feature, bin by bin.
template <int V, bool Shared>
class BinSearch {
 public:
  explicit BinSearch(const BinsTile& b)
      : b_(b),
        t_(b.terms),
        total_(t_.totals, t_.hessian_channel),
        n_(t_.totals[b.count_channel]),
        whole_weight_(t_.totals[b.weight_channel] * b.shared_unit) {
    if (t_.missing == nullptr) return;
    missing_.add(t_.missing, t_.hessian_channel);
    n_missing_ = t_.missing[b.count_channel];
    missing_weight_ = t_.missing[b.weight_channel];
  }

  float highest() {
    const std::int32_t* bin = t_.histogram;
    for (std::size_t first = 0; first < b_.n_bins && n_ - count_ >= b_.least_rows; first += kTogether) {
      const std::size_t n = b_.n_bins - first < kTogether ? b_.n_bins - first : kTogether;
      // Few bins differ too much for a bound.
      if (b_.bar == 0.0f || b_.n_bins < kLeastBounded || !pass(bin, n)) look_at(bin, n);
      bin += n * static_cast<std::size_t>(t_.width);
    }
    return highest_;
  }

 private:
  using Sums = OutputSums<V, Shared>;
  static constexpr std::size_t kTogether = 8;
  static constexpr std::size_t kLeastBounded = 32;
  static constexpr float kFarBelow = 0.9999f;

  Inverse inverse_of(double left_weight, double right_weight) const {
    return {1.0f / static_cast<float>(left_weight + b_.shared_lambda),
            1.0f / static_cast<float>(right_weight + b_.shared_lambda)};
  }

  // Goes past some bins if none of their candidates can come near the bar.
  bool pass(const std::int32_t* bin, std::size_t n) {
    Sums left = prefix_;
    Sums first;
    SignedIntegers lowest[V], highest[V];
    std::int32_t count = count_;
    std::int64_t weight = weight_, first_weight = 0;
    for (std::size_t i = 0; i < n; ++i, bin += t_.width) {
      left.add(bin, t_.hessian_channel);
      count += bin[b_.count_channel];
      if (Shared) weight += bin[b_.weight_channel];
      for (int v = 0; v < V; ++v) {
        const auto gradient = (SignedIntegers)left.gradient[v];
        if (i == 0) lowest[v] = highest[v] = gradient;
        lowest[v] = gradient < lowest[v] ? gradient : lowest[v];
        highest[v] = gradient > highest[v] ? gradient : highest[v];
      }
      if (i > 0) continue;
      first = left;
      first_weight = weight;
    }
    if (!stays_below(first, left, lowest, highest, first_weight, weight)) return false;
    if (n_missing_ > 0) {
      for (int v = 0; v < V; ++v) {
        lowest[v] = (SignedIntegers)((Integers)lowest[v] + missing_.gradient[v]);
        highest[v] = (SignedIntegers)((Integers)highest[v] + missing_.gradient[v]);
      }
      if (!stays_below(first + missing_, left + missing_, lowest, highest, first_weight + missing_weight_,
                       weight + missing_weight_))
        return false;
    }
    prefix_ = left;
    count_ = count;
    weight_ = weight;
    return true;
  }

  bool stays_below(const Sums& first, const Sums& last, const SignedIntegers* lowest, const SignedIntegers* highest,
                   std::int64_t first_weight, std::int64_t last_weight) const {
    Inverse inverse{};
    if (Shared)
      inverse = inverse_of(static_cast<double>(first_weight) * b_.shared_unit,
                           whole_weight_ - static_cast<double>(last_weight) * b_.shared_unit);
    return bound_of_bins<V, Shared>(t_, total_, first, last, lowest, highest, inverse) < kFarBelow * b_.bar;
  }

  void look_at(const std::int32_t* bin, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i, bin += t_.width) {
      const std::int32_t rows = bin[b_.count_channel];
      if (rows == 0) continue;
      count_ += rows;
      if (n_ - count_ < b_.least_rows) return;
      prefix_.add(bin, t_.hessian_channel);
      if (Shared) weight_ += bin[b_.weight_channel];
      if (count_ >= b_.least_rows) estimate(prefix_, weight_);
      if (n_missing_ == 0 || count_ + n_missing_ < b_.least_rows || n_ - count_ - n_missing_ < b_.least_rows) continue;
      estimate(prefix_ + missing_, weight_ + missing_weight_);
    }
  }

  void estimate(const Sums& left, std::int64_t weight) {
    Inverse inverse{};
    if (Shared) {
      const double left_weight = static_cast<double>(weight) * b_.shared_unit;
      const double right_weight = whole_weight_ - left_weight;
      if (b_.least_weight > 0 && (left_weight < b_.least_weight || right_weight < b_.least_weight)) return;
      inverse = inverse_of(left_weight, right_weight);
    }
    const float estimated = estimate_one(t_, total_, left, inverse);
    highest_ = estimated > highest_ ? estimated : highest_;
  }

  const BinsTile& b_;
  const ScanTile& t_;
  const Sums total_;
  const std::int32_t n_;
  const double whole_weight_;
  Sums missing_;
  std::int32_t n_missing_ = 0;
  std::int64_t missing_weight_ = 0;
  Sums prefix_;
  std::int32_t count_ = 0;
  std::int64_t weight_ = 0;
  float highest_ = 0.0f;
};

template <int V, bool Shared>
float highest_of_bins(const BinsTile& b) {
  return BinSearch<V, Shared>(b).highest();
}

float highest_estimate(const BinsTile& b) {
  const bool one = b.terms.n_outputs <= kFloats;
  if (b.shared) return one ? highest_of_bins<1, true>(b) : highest_of_bins<2, true>(b);
  return one ? highest_of_bins<1, false>(b) : highest_of_bins<2, false>(b);
}

template <bool Shared>
double terms_of(const TermsTile& t) {
  const std::int32_t* left = t.left;
  const std::int32_t* totals = t.totals;
  double lane[kLane] = {0};
  for (int j = 0; j < t.n_outputs; j += kLane) {
    const double* factor = t.factor + j;
    const double* alpha = t.alpha + j;
    // Reads past the outputs meet a factor of 0 and a lambda of 1.
    double sl[kLane], sr[kLane];
    for (int l = 0; l < kLane; ++l) {
      const double gl = soft_threshold(left[j + l], alpha[l]);
      const double gr = soft_threshold(static_cast<double>(totals[j + l]) - left[j + l], alpha[l]);
      if (Shared) {
        sl[l] = gl * gl * t.inverse_left;
        sr[l] = gr * gr * t.inverse_right;
      } else {
        const double hl = left[t.hessian_channel + j + l];
        const double hr = static_cast<double>(totals[t.hessian_channel + j + l]) - hl;
        sl[l] = score_term(gl, hl * t.hessian_unit[j + l] + t.lambda[j + l]);
        sr[l] = score_term(gr, hr * t.hessian_unit[j + l] + t.lambda[j + l]);
      }
    }
    double* left_terms = t.left_terms + j;
    double* right_terms = t.right_terms + j;
    double weight[kLane];
    for (int l = 0; l < kLane; ++l) weight[l] = factor[l];
    for (int l = 0; l < kLane; ++l) left_terms[l] = weight[l] * sl[l];
    for (int l = 0; l < kLane; ++l) right_terms[l] = weight[l] * sr[l];
    for (int l = 0; l < kLane; ++l) lane[l] += weight[l] * (sl[l] + sr[l]);
  }
  return sum_lanes(lane);
}

double terms(const TermsTile& t) { return t.shared ? terms_of<true>(t) : terms_of<false>(t); }

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
inline double term_of(double x) {
  if (kind == Term::kItself) return x;
  if (kind == Term::kSquare) return x * x;
  const double distance = __builtin_fabs(x);
  if (kind == Term::kAbsolute) return distance;
  return (kind == Term::kTwice ? 2.0 : 1.0) * hessian_of_distance(distance);
}

template <Term kind>
struct TermOf {
  static constexpr Term value = kind;
};

// Calls body with the term as a type.
template <class Body>
void with_term(Term term, Body&& body) {
  switch (term) {
    case Term::kItself:
      return body(TermOf<Term::kItself>());
    case Term::kSquare:
      return body(TermOf<Term::kSquare>());
    case Term::kPaper:
      return body(TermOf<Term::kPaper>());
    case Term::kTwice:
      return body(TermOf<Term::kTwice>());
    case Term::kAbsolute:
      return body(TermOf<Term::kAbsolute>());
  }
}

template <Term kind>
void sum_of_rows(const float* values, std::size_t stride, std::size_t begin, std::size_t end, int n,
                 const double* weight, double* out) {
  const auto term = [&](const float* v, int j) { return weight[j] * term_of<kind>(static_cast<double>(v[j])); };
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

template <Term kind>
inline double curvature(double p, double y) {
  if (kind == Term::kAbsolute) return __builtin_fabs(p - y);
  return (kind == Term::kTwice ? 2.0 : 1.0) * (p * (1.0 - p));
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
      if (Stored) h[i] = static_cast<float>(curvature<kind>(p, 0.0));
    }
    for (std::size_t r = 0; r < n_rows; ++r) {
      const std::size_t y = r * d + static_cast<std::size_t>(label[first + r]);
      const double p = static_cast<double>(e[y]) * inverse[y];
      g[y] = static_cast<float>(p - 1.0);
      if (Stored) h[y] = static_cast<float>(curvature<kind>(p, 1.0));
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
        if (Stored) h[from + j] = static_cast<float>(curvature<kind>(p, 0.0));
      }
    }
    const int y = label[row];
    const double p = static_cast<double>(exponential_of_loss(x[y] - largest)) * inverse;
    g[y] = static_cast<float>(p - 1.0);
    if (Stored) h[y] = static_cast<float>(curvature<kind>(p, 1.0));
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
        if (Terms) term += Weighted ? weight[r] * term_of<kind>(x) : term_of<kind>(x);
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

#define POLYLEAF_STRING_(x) #x
#define POLYLEAF_STRING(x) POLYLEAF_STRING_(x)

extern const Kernels kKernels;
const Kernels kKernels = {POLYLEAF_STRING(POLYLEAF_ISA),
                          scan,
                          estimate,
                          highest_estimate,
                          terms,
                          project,
                          weighted_sums,
                          softmax,
                          logistic,
                          softmax_shares,
                          sigmoids,
                          add_leaves,
                          add_to_rows,
                          sum_rows};

}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
