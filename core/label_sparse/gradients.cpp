#include "label_sparse/gradients.hpp"

#include <algorithm>
#include <cmath>

#include "base/order_free.hpp"
#include "quantize/fixed_point.hpp"
#include "rules/grid.hpp"

namespace polyleaf {

LabelGradients round_gradients(const SparseLabels& labels, const double* weight, double reg_alpha) {
  const FixedPoint grid(weight, labels.n_rows());
  const auto each_magnitude = [&](auto&& visit) {
    for (std::size_t row = 0; row < labels.n_rows(); ++row)
      for (const LabelCell& cell : labels.cells(row))
        visit(static_cast<std::size_t>(cell.output),
              (weight != nullptr ? weight[row] : 1.0) * std::fabs(static_cast<double>(cell.gradient())));
  };
  std::vector<double> largest(labels.n_outputs(), 0.0);
  each_magnitude([&](std::size_t j, double magnitude) { largest[j] = std::max(largest[j], magnitude); });
  const SumGrids grids(largest, labels.n_rows());
  std::vector<ExactSum> total(labels.n_outputs());
  each_magnitude([&](std::size_t j, double magnitude) { total[j].add(magnitude, {grids.coarse[j], grids.fine[j]}); });
  LabelGradients out;
  out.weighted = weight != nullptr;
  out.has_alpha = reg_alpha > 0;
  std::vector<double> scale(labels.n_outputs());
  for (std::size_t j = 0; j < labels.n_outputs(); ++j) {
    const double unit = grid.unit(total[j].value());
    scale[j] = grid.weight_unit / unit;
    out.unit.push_back(unit);
    out.factor.push_back(unit * unit);
    out.alpha.push_back(reg_alpha / unit);
  }
  out.weight_unit = weight != nullptr ? grid.unit(grid.total_weight) : 1.0;
  out.row_begin.push_back(0);
  for (std::size_t row = 0; row < labels.n_rows(); ++row) {
    const double factor = weight != nullptr ? weight[row] / grid.weight_unit : 1.0;
    for (const LabelCell& cell : labels.cells(row)) {
      const auto output = static_cast<std::size_t>(cell.output);
      const std::int32_t value = on_grid(static_cast<double>(cell.gradient()), scale[output], factor);
      if (value == 0) continue;
      out.output.push_back(cell.output);
      out.value.push_back(value);
    }
    out.row_begin.push_back(out.output.size());
    out.weight.push_back(weight != nullptr ? to_int32(weight[row] / out.weight_unit) : 1);
  }
  return out;
}

}  // namespace polyleaf
