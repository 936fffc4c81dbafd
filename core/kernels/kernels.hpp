// The hot loops. core/kernels.cpp is compiled once per instruction set; kernels() picks the best the machine has.
// Everything here works on plain pointers: no code shared with the rest may be compiled with a wider instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace polyleaf {

// A bin of one feature that holds rows of the node, in ascending order of bins.
struct Step {
  std::uint32_t slot;
  std::uint32_t rows_end;  // without histogram: where its rows end in the feature's order of rows
  bool right_allowed;      // "code <= bin" to the left, missing values to the right
  bool left_allowed;       // the same with missing values to the left
};

// Sums, for each allowed candidate of one feature, the score terms of one tile of outputs (eq. 16).
struct ScanTile {
  const std::int32_t* histogram;  // slots of the feature tile; null: sums are taken from the rows
  const std::int32_t* payload;    // vectors of the node's rows
  const std::uint32_t* order;     // their places by ascending bin, those with missing values last
  std::uint32_t n_rows;
  std::uint32_t n_missing;
  int width;
  int n_outputs;
  int hessian_channel;
  const Step* steps;
  std::size_t n_steps;
  const std::int32_t* missing;  // the missing bin's vector of the histogram; null where the node has none
  const std::int32_t* totals;   // the node's sums of this output tile
  const double* factor;         // gain weight x unit^2 per output, padded with 0 to whole vectors
  const double* hessian_unit;   // padded with 0
  const double* lambda;         // padded with 1
  const double* alpha;          // in gradient units, padded with 0
  bool has_alpha;
  bool moderate;  // denominators H + lambda are positive, and their products within range
  // A Hessian shared by all outputs: 1 / (H + lambda) per candidate. Null: diagonal.
  const double* inverse_left;  // 2 per step: missing right, missing left
  const double* inverse_right;
  // For `estimate`: the same in float32, factors relative to the largest, padded to 32 outputs.
  const float* factor32;
  const float* hessian_unit32;
  const float* lambda32;
  float* estimated;     // 2 per step, added to
  double* score;        // 2 per step, added to
  double* left_weight;  // 2 per step, sum over outputs of the left child's Hessian; null: not wanted
};

// All bins of one feature, whose candidates are not listed: what `highest_estimate` needs besides.
struct BinsTile {
  ScanTile terms;  // its histogram begins with the feature's first bin; steps and what is given per step is not used
  std::size_t n_bins;
  int count_channel;
  int weight_channel;
  std::int32_t least_rows;  // of a child
  bool shared;              // one Hessian for all outputs: that of the weight channel
  double shared_unit;
  double shared_lambda;
  double least_weight;  // of a child, where all outputs share the Hessian
  float bar;            // an estimate that others have reached; 0: none
};

// The score terms of one tile of outputs for one candidate, side by side.
struct TermsTile {
  const std::int32_t* left;    // sums of the left child
  const std::int32_t* totals;  // of the node
  int n_outputs;
  int hessian_channel;
  const double* factor;  // as in ScanTile
  const double* hessian_unit;
  const double* lambda;
  const double* alpha;
  bool shared;  // the Hessian: 1 / (H + lambda) is given
  double inverse_left;
  double inverse_right;
  double* left_terms;  // whole lanes are written
  double* right_terms;
};

// What is summed of a number: itself, its square, or, of the gradient p - y with y 0 or 1, the Hessian it belongs to:
// p(1-p), 2p(1-p) or |p-y|.
enum class Term : std::uint8_t { kItself, kSquare, kPaper, kTwice, kAbsolute };

struct Kernels {
  const char* name;
  void (*scan)(const ScanTile& tile);
  // The same scores to about six digits, but for a common factor. Without L1 regularisation, and with moderate terms.
  // Returns the highest of the estimates added to; 0 where no candidate is allowed.
  float (*estimate)(const ScanTile& tile);
  // The highest estimate of any candidate of a feature; 0: none is allowed. Candidates that stay below the bar by more
  // than an estimate's error need not be looked at.
  float (*highest_estimate)(const BinsTile& tile);
  double (*terms)(const TermsTile& tile);  // returns the sum of both sides
  // out (rows x columns) = values (rows x n) times matrix, which stands column by column, `matrix_stride` floats apart
  // and padded with zeros to multiples of 16.
  void (*project)(const float* values, std::size_t stride, std::size_t begin, std::size_t end, int n,
                  const float* matrix, std::size_t matrix_stride, int n_columns, float* out);
  // out (per row) = weighted sum of a term of n values.
  void (*weighted_sums)(const float* values, std::size_t stride, std::size_t begin, std::size_t end, int n,
                        const double* weight, Term term, double* out);
  // `hessian` (here and below) may be null; `curvature` is one of the Hessians.
  void (*softmax)(const double* raw, const std::int32_t* label, Term curvature, std::size_t begin, std::size_t end,
                  int n_outputs, float* gradient, float* hessian);
  void (*logistic)(const double* raw, const double* label, std::size_t begin, std::size_t end, float* gradient,
                   float* hessian);
  // What these losses predict.
  void (*softmax_shares)(const double* raw, std::size_t begin, std::size_t end, int n_outputs, double* out);
  void (*sigmoids)(const double* raw, std::size_t begin, std::size_t end, double* out);
  // Adds to each row of scores what its leaf says: values (leaves x n) in multiples of `unit`.
  void (*add_leaves)(const std::uint32_t* leaf, const float* values, const double* unit, std::size_t begin,
                     std::size_t end, int n, double* raw);
  // Adds the same values to some rows.
  void (*add_to_rows)(const double* value, int n, const std::uint32_t* rows, std::size_t n_rows, std::size_t stride,
                      double* out);
  // Adds some rows, weighted, to `sums` (per output), and a term of them to `terms`; one of both may be null.
  void (*sum_rows)(const float* values, std::size_t stride, const double* weight, const std::uint32_t* rows,
                   std::size_t n_rows, int n_outputs, double* sums, Term term, double* terms);
};

const Kernels& kernels();

// Chooses the kernels by name ("baseline", "avx2", "avx512"); false where the machine does not have them.
bool select_kernels(const char* name);

}  // namespace polyleaf
