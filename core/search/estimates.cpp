#include "search/estimates.hpp"

#include <algorithm>
#include <cmath>

#include "search/two_sided.hpp"

namespace polyleaf {
namespace {

// Factors, relative to the largest, that float32 holds with room for what they are multiplied with.
constexpr double kSmallestFactor = 1e-30;

// Whether, with sums of 31 bits or fewer, squares, denominators and their products stay within float32.
bool fit_float(const OutputTerms& terms, double largest_factor) {
  const auto within = [](double value, double low, double high) { return value >= low && value <= high; };
  const double coarsest = 1e-2 * std::ldexp(1.0, 31 - terms.layout().sum_bits());
  bool fits = terms.rules.reg_alpha == 0 && terms.payload.hessian_is_positive &&
              within(terms.rules.reg_lambda, 1e-6, 1e6) && within(largest_factor, 1e-200, 1e200);
  for (const double one : terms.hessian_unit) fits = fits && (one == 0 || within(one, 1e-25, coarsest) || one == 1);
  for (const double one : terms.factor) fits = fits && (one == 0 || one >= kSmallestFactor * largest_factor);
  return fits;
}

}  // namespace

EstimateTerms::EstimateTerms(const OutputTerms& terms) : terms_(terms) {
  // Of a diagonal Hessian the weight of a side is not estimated.
  if (terms.diagonal() && terms.rules.min_child_weight > 0) return;
  const double largest = terms.factor.empty() ? 0.0 : *std::max_element(terms.factor.begin(), terms.factor.end());
  if (!fit_float(terms, largest)) return;
  scale_ = largest;
  constexpr std::size_t kPadded = PayloadLayout::kMaxWidth;
  const std::size_t size = terms.factor.size() / terms.padded * kPadded;
  factor_.assign(size, 0.0f);
  hessian_unit_.assign(size, 0.0f);
  lambda_.assign(size, 1.0f);
  for (std::size_t j = 0; j < terms.factor.size(); ++j) {
    const std::size_t at = j / terms.padded * kPadded + j % terms.padded;
    factor_[at] = static_cast<float>(terms.factor[j] / largest);
    hessian_unit_[at] = static_cast<float>(terms.hessian_unit[j]);
    lambda_[at] = static_cast<float>(terms.lambda[j]);
  }
}

// All terms are positive, so that their sum is as exact as they are; then one addition for each output tile.
float EstimateTerms::error() const { return 1e-5f + 1e-7f * static_cast<float>(terms_.layout().n_tiles); }

FloatTerms EstimateTerms::tile(const SearchedNode& node, int output_tile) const {
  const PayloadLayout& layout = terms_.layout();
  const std::size_t first = static_cast<std::size_t>(output_tile) * PayloadLayout::kMaxWidth;
  return {factor_.data() + first,         hessian_unit_.data() + first, lambda_.data() + first,
          layout.outputs_in(output_tile), layout.hessian_channel(),     node.totals + output_tile * layout.width};
}

void EstimatingFinder::start(const SearchedNode& node) {
  node_ = node;
  bar_ = 0.0f;  // what was estimated before was of other nodes
}

void EstimatingFinder::clear(const FeatureTile& tile) {
  candidates_.clear(node_, tile);
  highest_.assign(tile.n_features(), 0.0f);
  together_ = trial_.worthwhile();
}

void EstimatingFinder::clear_estimates(std::size_t position) {
  const std::size_t end = 2 * candidates_.end(position);
  if (estimated_.size() < end) estimated_.resize(2 * end);
  std::fill(estimated_.begin() + static_cast<std::ptrdiff_t>(2 * candidates_.begin(position)),
            estimated_.begin() + static_cast<std::ptrdiff_t>(end), 0.0f);
}

EstimateTile EstimatingFinder::prepare(int output_tile) const {
  EstimateTile job{};
  job.terms = estimates_.tile(node_, output_tile);
  return job;
}

// The highest of the feature's estimates so far.
float EstimatingFinder::estimate(EstimateTile& job, std::size_t position, const StepSums& sums) {
  if (candidates_.has_none(position)) return 0.0f;
  const std::size_t first = candidates_.begin(position);
  job.sums = sums;
  job.steps = &candidates_.step(first);
  job.n_steps = candidates_.end(position) - first;
  job.inverse_left = candidates_.inverse_left(first);
  job.inverse_right = candidates_.inverse_right(first);
  job.estimated = estimated_.data() + 2 * first;
  return estimate_kernels().estimate(job);
}

void EstimatingFinder::add(const FeatureTile& tile, int output_tile, const std::int32_t* histogram) {
  if (output_tile == 0) clear(tile);
  EstimateTile job = prepare(output_tile);
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    if (output_tile == 0) {  // its bins are then near at hand
      candidates_.list_bins(tile, histogram);
      clear_estimates(position);
    }
    const StepSums sums = candidates_.sums(tile, position, output_tile, histogram);
    if (together_)
      bound(job.terms, position, sums);
    else
      highest_[position] = estimate(job, position, sums);
  }
}

// No threshold lets all of a term through.
void EstimatingFinder::bound(const FloatTerms& terms, std::size_t position, const StepSums& sums) {
  if (candidates_.has_none(position)) return;
  ExcessTile job = excess_of(candidates_, position, terms, sums, estimated_.data());
  job.restricted = true;
  job.together = true;
  top_bound_kernels().excess(job);
}

void EstimatingFinder::finish_bounds(const FeatureTile& tile) {
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    const std::size_t first = candidates_.begin(position), end = candidates_.end(position);
    float highest = 0.0f;
    for (std::size_t from = first; from < end; from += kStepsTogether) {
      const float promised[2] = {estimated_[2 * from], estimated_[2 * from + 1]};
      highest = std::max({highest, promised[0], promised[1]});
      for (std::size_t s = from + 1; s < std::min(from + kStepsTogether, end); ++s)
        std::copy_n(promised, 2, estimated_.data() + 2 * s);
    }
    highest_[position] = highest;
  }
}

float EstimatingFinder::raise_bar() {
  const float highest = *std::max_element(highest_.begin(), highest_.end());
  bar_ = std::max(bar_, highest);
  return highest;
}

float EstimatingFinder::least_estimate() const {
  return bar_ > kSmallestEstimate ? bar_ * (1.0f - estimates_.error()) : 0.0f;
}

FoundSplit EstimatingFinder::score_close(const FeatureTile& tile, float least, const TileHistograms& histograms) {
  close_.clear();
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    if (highest_[position] < least || candidates_.has_none(position)) continue;
    for (std::size_t s = candidates_.begin(position); s < candidates_.end(position); ++s) {
      Step& step = candidates_.step(s);
      step.right_allowed = step.right_allowed && estimated_[2 * s] >= least;
      step.left_allowed = step.left_allowed && estimated_[2 * s + 1] >= least;
    }
    scores_.clear(candidates_, position);
    close_.push_back(position);
  }
  for (int t = 0; t < terms_.layout().n_tiles; ++t) {
    ScanTile job = scores_.prepare(node_, t);
    for (const std::size_t position : close_)
      scores_.add(job, candidates_, position, candidates_.sums(tile, position, t, histograms.of(t)));
  }
  FoundSplit found;
  for (const std::size_t position : close_) scores_.offer(candidates_, node_, tile, position, found.best);
  return found;
}

FoundSplit EstimatingFinder::best(const FeatureTile& tile, const TileHistograms& histograms) {
  return finish(tile, histograms);
}

FoundSplit EstimatingFinder::finish(const FeatureTile& tile, const TileHistograms& histograms) {
  if (together_) {
    finish_bounds(tile);
    trial_.took(estimate_promising(tile, 0.0f, histograms), candidates_.n_steps());
  } else {
    trial_.did_without();
  }
  raise_bar();
  return score_close(tile, least_estimate(), histograms);
}

FoundSplit EstimatingFinder::search_rows(const FeatureTile& tile, const NodeRows& rows) {
  clear(tile);
  candidates_.list_rows(tile, rows);
  if (candidates_.n_steps() == 0) return {};
  if (node_.two_sided != nullptr) {
    estimate_two_sided(tile, *node_.two_sided);
    estimate_promising(tile, node_.two_sided->bound_of_others(), {});
    raise_bar();
    return score_close(tile, least_estimate(), {});
  }
  if (!together_) {
    estimate_all(tile, 0, tile.n_features(), {});
    return finish(tile, {});
  }
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    clear_estimates(position);
    for (int t = 0; t < terms_.layout().n_tiles; ++t)
      bound(estimates_.tile(node_, t), position, candidates_.sums(tile, position, t, nullptr));
  }
  return finish(tile, {});
}

void EstimatingFinder::estimate_all(const FeatureTile& tile, std::size_t first, std::size_t last,
                                    const TileHistograms& histograms) {
  for (std::size_t position = first; position < last; ++position) clear_estimates(position);
  for (int t = 0; t < terms_.layout().n_tiles; ++t) {
    EstimateTile job = prepare(t);
    for (std::size_t position = first; position < last; ++position)
      highest_[position] = estimate(job, position, candidates_.sums(tile, position, t, histograms.of(t)));
  }
}

void EstimatingFinder::estimate_two_sided(const FeatureTile& tile, const TwoSidedOutputs& two_sided) {
  const std::size_t n = tile.n_features();
  for (std::size_t position = 0; position < n; ++position) clear_estimates(position);
  for (int t = 0; t < two_sided.n_tiles(); ++t) {
    EstimateTile job{};
    job.terms = two_sided.tile(t);
    for (std::size_t position = 0; position < n; ++position)
      highest_[position] = estimate(job, position, two_sided.sums(candidates_.sums(tile, position, t, nullptr), t));
  }
}

// The feature that promises most comes first: it says what others have to reach.
std::size_t EstimatingFinder::estimate_promising(const FeatureTile& tile, float of_others,
                                                 const TileHistograms& histograms) {
  const auto first = static_cast<std::size_t>(std::max_element(highest_.begin(), highest_.end()) - highest_.begin());
  promised_ = highest_;
  std::fill(highest_.begin(), highest_.end(), 0.0f);
  const auto may_reach = [&](float promised) {
    return promised * (1.0f + 2.0f * estimates_.error()) + of_others >= least_estimate();
  };
  std::size_t n_estimated = 0;
  const auto look_at = [&](std::size_t position) {
    if (!may_reach(promised_[position])) return;
    std::size_t n_open = 0;
    for (std::size_t s = candidates_.begin(position); s < candidates_.end(position); ++s) {
      Step& step = candidates_.step(s);
      step.right_allowed = step.right_allowed && may_reach(estimated_[2 * s]);
      step.left_allowed = step.left_allowed && may_reach(estimated_[2 * s + 1]);
      n_open += step.right_allowed || step.left_allowed ? 1 : 0;
    }
    if (n_open == 0) return;
    n_estimated += n_open;
    estimate_all(tile, position, position + 1, histograms);
    bar_ = std::max(bar_, highest_[position]);
  };
  look_at(first);
  for (std::size_t position = 0; position < tile.n_features(); ++position)
    if (position != first) look_at(position);
  return n_estimated;
}

}  // namespace polyleaf
