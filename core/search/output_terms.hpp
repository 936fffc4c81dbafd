// What the rules make of sums: the score of a node, the terms of the outputs on both sides of a split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/score.hpp"
#include "quantize/payload.hpp"
#include "rules/scoring.hpp"

namespace polyleaf {

// The rounded gradients and the rules of one tree, and what they say of each output. Numbers of the outputs are laid
// out as the payload is: [output tile][padded outputs].
struct OutputTerms {
  const Payload& payload;
  const Rules& rules;
  std::size_t padded = 0;      // outputs of a tile, rounded up to whole lanes
  std::vector<double> factor;  // gain weight x gradient unit^2
  std::vector<double> hessian_unit;
  std::vector<double> lambda;
  std::vector<double> alpha;  // in gradient units
  bool moderate = true;       // denominators H + lambda are positive, and their products within range

  // `gain_weight` and `unit`: per output. Payload and rules must live as long.
  OutputTerms(const Payload& payload, const Rules& rules, const double* gain_weight, const double* unit);

  const PayloadLayout& layout() const { return payload.layout; }
  bool diagonal() const { return layout().hessian == HessianKind::kDiagonal; }
  // Where an output's numbers stand.
  std::size_t place(std::size_t output) const;
  TileTerms tile(int output_tile) const;

  // Rows of a node or of one side.
  std::int64_t count(const std::int32_t* sums) const { return sums[layout().count_channel()]; }
  // Mean over the outputs of the Hessian (the diagonal of a full one).
  double mean_hessian(const std::int32_t* sums) const;
  // Whether a left child with that mean Hessian and its sibling weigh enough.
  bool heavy_enough(double left_weight, const std::int32_t* totals) const;
  // Sum over outputs of T(G)^2 / (H + lambda) of a whole node.
  double node_score(const std::int32_t* totals) const;
  // The terms of every output on both sides of a split; returns their sum. Sums are followed by readable numbers up to
  // a whole lane; so will the terms be.
  double side_terms(const std::int32_t* left, const std::int32_t* totals, std::vector<double>& of_left,
                    std::vector<double>& of_right) const;
};

}  // namespace polyleaf
