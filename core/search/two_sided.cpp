#include "search/two_sided.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "search/estimates.hpp"

namespace polyleaf {
namespace {

// Rows after which outputs are counted.
constexpr std::size_t kBlockRows = 64;
// Room for the rounding of ratios in float32, and for that of a bound's terms, which are positive.
constexpr float kSafeRatio = 1.0f - 1e-6f;
constexpr double kSafeBound = 1.0 + 1e-5;

}  // namespace

// Gradients and Hessians of a row stand side by side: |G|H|.
int TwoSidedOutputs::look_through(const PayloadLayout& layout, const NodeRows& rows, int most, bool ratios) {
  const auto n = static_cast<std::size_t>(layout.outputs_per_tile);
  const std::size_t size = n * static_cast<std::size_t>(layout.n_tiles) + PayloadLayout::kMaxWidth;
  lowest_.assign(size, std::numeric_limits<std::int32_t>::max());
  highest_.assign(size, std::numeric_limits<std::int32_t>::min());
  if (ratios) ratio_.assign(size, std::numeric_limits<float>::infinity());
  int n_found = 0;
  for (std::size_t begin = 0; begin < rows.size() && n_found <= most; begin += kBlockRows) {
    const std::size_t n_rows = std::min(kBlockRows, rows.size() - begin);
    for (int t = 0; t < layout.n_tiles; ++t) {
      const std::size_t first = static_cast<std::size_t>(t) * n;
      estimate_kernels().widen({rows.tile(t), layout.width, layout.hessian_channel(), layout.outputs_per_tile,
                                rows.places() + begin, n_rows, lowest_.data() + first, highest_.data() + first,
                                ratios ? ratio_.data() + first : nullptr});
    }
    n_found = 0;
    for (std::size_t j = 0; j < static_cast<std::size_t>(layout.n_outputs); ++j) n_found += is_two_sided(j) ? 1 : 0;
  }
  return n_found;
}

void TwoSidedOutputs::take(const OutputTerms& terms, const EstimateTerms& estimates, const NodeRows& rows,
                           const std::int32_t* totals) {
  const PayloadLayout& layout = terms.layout();
  look_through(layout, rows, layout.n_outputs, true);
  outputs_.clear();
  bounds_.clear();
  for (int j = 0; j < layout.n_outputs; ++j) {
    const auto at = static_cast<std::size_t>(j);
    if (is_two_sided(at)) {
      outputs_.push_back(j);
      continue;
    }
    const int in_tile = j % layout.outputs_per_tile;
    const FloatTerms of_tile = estimates.tile({totals}, j / layout.outputs_per_tile);
    const double gradient = std::fabs(static_cast<double>(of_tile.totals[in_tile]));
    const double least = static_cast<double>(ratio_[at] * kSafeRatio) * of_tile.hessian_unit[in_tile];
    const double bound = gradient * gradient / (least * gradient + of_tile.lambda[in_tile]);
    bounds_.push_back(static_cast<float>(of_tile.factor[in_tile] * bound * kSafeBound));
  }
  const std::size_t n_tiles = static_cast<std::size_t>(this->n_tiles()), n_padded = n_tiles * kPerTile;
  n_rows_ = rows.size();
  data_.grow(n_tiles * n_rows_ * kWidth);
  totals_.assign(n_tiles * kWidth + PayloadLayout::kSlack, 0);
  factor_.assign(n_padded + PayloadLayout::kMaxWidth, 0.0f);
  hessian_unit_.assign(factor_.size(), 0.0f);
  lambda_.assign(factor_.size(), 1.0f);
  if (n_outputs() % kPerTile != 0) std::fill_n(data_.data() + (n_tiles - 1) * n_rows_ * kWidth, n_rows_ * kWidth, 0);
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    const int output_tile = outputs_[k] / layout.outputs_per_tile, from = outputs_[k] % layout.outputs_per_tile;
    const std::size_t tile = k / kPerTile, to = k % kPerTile;
    const FloatTerms of_tile = estimates.tile({totals}, output_tile);
    factor_[k] = of_tile.factor[from];
    hessian_unit_[k] = of_tile.hessian_unit[from];
    lambda_[k] = of_tile.lambda[from];
    const auto copy = [&](const std::int32_t* row, std::int32_t* of_row) {
      of_row[to] = row[from];
      of_row[kPerTile + to] = row[layout.hessian_channel() + from];
    };
    copy(of_tile.totals, totals_.data() + tile * kWidth);
    const std::int32_t* of_rows = rows.tile(output_tile);
    std::int32_t* of_rows_here = data_.data() + tile * n_rows_ * kWidth;
    for (std::size_t i = 0; i < n_rows_; ++i)
      copy(of_rows + rows.place(i) * static_cast<std::size_t>(layout.width), of_rows_here + i * kWidth);
  }
}

float TwoSidedOutputs::excess_of_others(float threshold) const {
  double sum = 0.0;
  for (const float bound : bounds_) sum += std::max(bound - threshold, 0.0f);
  return static_cast<float>(sum * kSafeBound);
}

FloatTerms TwoSidedOutputs::tile(int t) const {
  const std::size_t first = static_cast<std::size_t>(t) * kPerTile;
  return {factor_.data() + first,
          hessian_unit_.data() + first,
          lambda_.data() + first,
          std::min(kPerTile, n_outputs() - t * kPerTile),
          kPerTile,
          totals_.data() + static_cast<std::size_t>(t) * kWidth};
}

StepSums TwoSidedOutputs::sums(const StepSums& of_rows, int t) const {
  StepSums sums = of_rows;
  sums.width = static_cast<int>(kWidth);
  sums.payload = data_.data() + static_cast<std::size_t>(t) * n_rows_ * kWidth;
  return sums;
}

}  // namespace polyleaf
