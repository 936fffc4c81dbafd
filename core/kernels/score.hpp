// Scores of candidates in double precision (eq. 16), a tile of outputs at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/steps.hpp"

namespace polyleaf {

// What the rules need of the outputs of a tile, padded to whole lanes.
struct TileTerms {
  const double* factor;        // gain weight x unit^2, padded with 0
  const double* hessian_unit;  // padded with 0
  const double* lambda;        // padded with 1
  const double* alpha;         // in gradient units, padded with 0
  int n_outputs;
  int hessian_channel;
};

// Sums, for each allowed candidate of one feature, the score terms of one tile of outputs (eq. 16).
struct ScanTile {
  StepSums sums;
  const Step* steps;
  std::size_t n_steps;
  const std::int32_t* totals;  // the node's sums of this output tile
  TileTerms terms;
  bool has_alpha;
  bool moderate;  // denominators H + lambda are positive, and their products within range
  // A Hessian shared by all outputs: 1 / (H + lambda) per candidate. Null: diagonal.
  const double* inverse_left;  // 2 per step: missing right, missing left
  const double* inverse_right;
  double* score;        // 2 per step, added to
  double* left_weight;  // 2 per step, sum over outputs of the left child's Hessian; null: not wanted
};

// The score terms of one tile of outputs for one candidate, side by side.
struct TermsTile {
  const std::int32_t* left;    // sums of the left child
  const std::int32_t* totals;  // of the node
  TileTerms terms;
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
