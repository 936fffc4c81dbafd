// Scores of candidates in double precision (eq. 16), a tile of outputs at a time.
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

struct ScoreKernels {
  void (*scan)(const ScanTile& tile);
  double (*terms)(const TermsTile& tile);  // returns the sum of both sides
};

// Of the instruction set in use (kernels/dispatch.hpp).
const ScoreKernels& score_kernels();

}  // namespace polyleaf
