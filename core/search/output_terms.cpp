#include "search/output_terms.hpp"

#include "rules/acceptance.hpp"

namespace polyleaf {

OutputTerms::OutputTerms(const Payload& of_tree, const Rules& with_rules, const double* gain_weight, const double* unit)
    : payload(of_tree), rules(with_rules) {
  if (layout().hessian == HessianKind::kFull) return;  // scored jointly
  moderate = payload.hessian_is_positive && rules.reg_lambda > 1e-100 && rules.reg_lambda < 1e100;
  const auto per_tile = static_cast<std::size_t>(layout().outputs_per_tile);
  padded = (per_tile + PayloadLayout::kLane - 1) / PayloadLayout::kLane * PayloadLayout::kLane;
  const std::size_t size = padded * static_cast<std::size_t>(layout().n_tiles);
  factor.assign(size, 0.0);
  hessian_unit.assign(size, 0.0);
  lambda.assign(size, 1.0);
  alpha.assign(size, 0.0);
  for (std::size_t j = 0; j < static_cast<std::size_t>(layout().n_outputs); ++j) {
    const std::size_t at = place(j);
    factor[at] = gain_weight[j] * payload.gradient_unit[j] * payload.gradient_unit[j];
    hessian_unit[at] = payload.hessian_unit[j];
    lambda[at] = rules.reg_lambda;
    // Sums have 31 bits at most, those of gradients and of Hessians.
    moderate = moderate && hessian_unit[at] < 1e90;
    alpha[at] = rules.reg_alpha / unit[j] / payload.gradient_unit[j];
  }
}

std::size_t OutputTerms::place(std::size_t output) const {
  const auto per_tile = static_cast<std::size_t>(layout().outputs_per_tile);
  return output / per_tile * padded + output % per_tile;
}

TileTerms OutputTerms::tile(int output_tile) const {
  const std::size_t first = static_cast<std::size_t>(output_tile) * padded;
  return {factor.data() + first, hessian_unit.data() + first,      lambda.data() + first,
          alpha.data() + first,  layout().outputs_in(output_tile), layout().hessian_channel()};
}

double OutputTerms::mean_hessian(const std::int32_t* sums) const {
  const auto d = static_cast<std::size_t>(layout().n_outputs);
  double sum = 0.0;
  switch (layout().hessian) {
    case HessianKind::kCount:
    case HessianKind::kShared:
      return sums[layout().weight_channel()] * payload.hessian_unit[0];
    case HessianKind::kDiagonal:
      for (std::size_t j = 0; j < d; ++j) {
        const int t = static_cast<int>(j) / layout().outputs_per_tile;
        const int at = static_cast<int>(j) % layout().outputs_per_tile;
        sum += sums[t * layout().width + layout().hessian_channel() + at] * payload.hessian_unit[j];
      }
      break;
    case HessianKind::kFull:
      for (std::size_t j = 0; j < d; ++j) {
        const std::size_t entry = triangle(j + 1) - 1;
        sum += sums[1 + d + entry] * payload.hessian_unit[entry];
      }
      break;
  }
  return sum / layout().n_outputs;
}

bool OutputTerms::heavy_enough(double left_weight, const std::int32_t* totals) const {
  if (rules.min_child_weight <= 0) return true;
  return polyleaf::heavy_enough(left_weight, mean_hessian(totals), rules.min_child_weight);
}

double OutputTerms::node_score(const std::int32_t* totals) const {
  const double shared = layout().hessian == HessianKind::kShared
                            ? totals[layout().weight_channel()] * payload.hessian_unit[0]
                            : static_cast<double>(count(totals));
  double score = 0.0;
  for (int t = 0; t < layout().n_tiles; ++t) {
    const std::int32_t* sums = totals + t * layout().width;
    const TileTerms terms = tile(t);
    for (int j = 0; j < terms.n_outputs; ++j) {
      const double hessian = diagonal() ? sums[terms.hessian_channel + j] * terms.hessian_unit[j] : shared;
      score += terms.factor[j] * score_term(soft_threshold(sums[j], terms.alpha[j]), hessian + terms.lambda[j]);
    }
  }
  return score;
}

double OutputTerms::side_terms(const std::int32_t* left, const std::int32_t* totals, std::vector<double>& of_left,
                               std::vector<double>& of_right) const {
  const std::size_t room = static_cast<std::size_t>(layout().n_outputs) + PayloadLayout::kLane;
  if (of_left.size() < room) of_left.resize(room);
  if (of_right.size() < room) of_right.resize(room);
  TermsTile job{};
  job.shared = !diagonal();
  if (job.shared) {
    const double unit = payload.hessian_unit[0];
    const double left_weight = left[layout().weight_channel()] * unit;
    const double right_weight =
        (static_cast<double>(totals[layout().weight_channel()]) - left[layout().weight_channel()]) * unit;
    job.inverse_left = score_term(1.0, left_weight + rules.reg_lambda);
    job.inverse_right = score_term(1.0, right_weight + rules.reg_lambda);
  }
  double sum = 0.0;
  for (int t = 0; t < layout().n_tiles; ++t) {
    const std::size_t output = static_cast<std::size_t>(t) * static_cast<std::size_t>(layout().outputs_per_tile);
    job.terms = tile(t);
    job.left = left + t * layout().width;
    job.totals = totals + t * layout().width;
    job.left_terms = of_left.data() + output;
    job.right_terms = of_right.data() + output;
    sum += score_kernels().terms(job);
  }
  return sum;
}

}  // namespace polyleaf
