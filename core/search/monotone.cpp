#include "search/monotone.hpp"

#include <cmath>
#include <limits>

#include "search/output_terms.hpp"

namespace polyleaf {
namespace {

// No bound, with room to add two of them.
constexpr double kAnywhere = std::numeric_limits<double>::max() / 4;

// More than rounding makes of a score.
constexpr double kNoise = 1e-9;

// The sums of one output, and what the rules need beside them.
struct OutputSums {
  std::size_t output;
  double left, left_denominator;
  double right, right_denominator;
  double factor, alpha;
};

class MonotoneScore : public JointScore {
 public:
  MonotoneScore(const OutputTerms& terms, const std::int8_t* sign)
      : terms_(terms), sign_(sign), d_(static_cast<std::size_t>(terms.layout().n_outputs)) {}

  double children(const std::int32_t* left, const std::int32_t* totals, const Place& place, double enough,
                  Scratch& scratch) const override {
    const ValueBounds& bounds = *place.bounds;
    // Without constraints the children would score more, and that is known faster.
    const double most = terms_.side_terms(left, totals, scratch.left, scratch.right) + bounds.shift;
    if (most < enough * (1 - kNoise)) return most > 0 ? most : 0.0;
    double score = 0.0;
    each_output(left, totals, [&](const OutputSums& s) {
      const SiblingValues value = values(s, sign_of(place.feature, s.output), bounds);
      score += s.factor * (value_term(s.left, s.left_denominator, s.alpha, value.left) +
                           value_term(s.right, s.right_denominator, s.alpha, value.right));
    });
    score += bounds.shift;
    return score > 0 ? score : 0.0;
  }

  double node(const std::int32_t*, const std::vector<std::int32_t>&, const ValueBounds& bounds,
              Scratch&) const override {
    return bounds.own_score;
  }

  void bound_root(const std::int32_t* totals, ValueBounds& root) const override {
    root.low.assign(d_, -kAnywhere);
    root.high.assign(d_, kAnywhere);
    score_node(totals, root);
  }

  void bound_children(const std::int32_t* left, const std::int32_t* totals, int feature, const ValueBounds& parent,
                      ValueBounds& of_left, ValueBounds& of_right) const override {
    of_left.low = of_right.low = parent.low;
    of_left.high = of_right.high = parent.high;
    std::vector<std::int32_t> right(totals, totals + terms_.layout().n_channels());
    for (std::size_t c = 0; c < right.size(); ++c) right[c] -= left[c];
    if (feature >= 0) {
      each_output(left, totals, [&](const OutputSums& s) {
        const int sign = sign_of(feature, s.output);
        if (sign == 0) return;
        const SiblingValues value = values(s, sign, parent);
        const double middle = 0.5 * (value.left + value.right);
        (sign > 0 ? of_left.high : of_left.low)[s.output] = middle;
        (sign > 0 ? of_right.low : of_right.high)[s.output] = middle;
      });
    }
    score_node(left, of_left);
    score_node(right.data(), of_right);
  }

 private:
  int sign_of(int feature, std::size_t output) const {
    return feature < 0 ? 0 : sign_[static_cast<std::size_t>(feature) * d_ + output];
  }

  static SiblingValues values(const OutputSums& s, int sign, const ValueBounds& bounds) {
    return sibling_values(s.left, s.left_denominator, s.right, s.right_denominator, s.alpha, sign, bounds.low[s.output],
                          bounds.high[s.output]);
  }

  // Calls visit(sums) for every output, in their order.
  template <class Visit>
  void each_output(const std::int32_t* left, const std::int32_t* totals, Visit&& visit) const {
    const PayloadLayout& layout = terms_.layout();
    const auto denominators = [&](int channel, double unit, OutputSums& s) {
      s.left_denominator = left[channel] * unit + terms_.rules.reg_lambda;
      s.right_denominator = (static_cast<double>(totals[channel]) - left[channel]) * unit + terms_.rules.reg_lambda;
    };
    OutputSums s{};
    if (!terms_.diagonal()) denominators(layout.weight_channel(), terms_.payload.hessian_unit[0], s);
    for (int t = 0; t < layout.n_tiles; ++t) {
      for (int j = 0; j < layout.outputs_in(t); ++j) {
        const std::size_t at = static_cast<std::size_t>(t) * terms_.padded + static_cast<std::size_t>(j);
        const int channel = t * layout.width + j;
        s.output = static_cast<std::size_t>(t * layout.outputs_per_tile + j);
        s.left = left[channel];
        s.right = static_cast<double>(totals[channel]) - left[channel];
        if (terms_.diagonal()) denominators(channel + layout.hessian_channel(), terms_.hessian_unit[at], s);
        s.factor = terms_.factor[at];
        s.alpha = terms_.alpha[at];
        visit(s);
      }
    }
  }

  // Sets what a node scores as a leaf. The magnitudes of its terms, not what is left of them, are the scale on which
  // scores are rounded.
  void score_node(const std::int32_t* totals, ValueBounds& bounds) const {
    double score = 0.0;
    double magnitude = 0.0;
    each_output(totals, totals, [&](const OutputSums& s) {
      const double own = leaf_value(soft_threshold(s.left, s.alpha), s.left_denominator);
      const double value = bounded(own, bounds.low[s.output], bounds.high[s.output]);
      score += s.factor * value_term(s.left, s.left_denominator, s.alpha, value);
      magnitude += s.factor * value_magnitude(s.left, s.left_denominator, s.alpha, value);
    });
    bounds.shift = magnitude - score;
    bounds.own_score = magnitude;
  }

  const OutputTerms& terms_;
  const std::int8_t* sign_;
  const std::size_t d_;
};

}  // namespace

std::unique_ptr<JointScore> make_monotone_score(const OutputTerms& terms, const std::int8_t* sign) {
  return std::make_unique<MonotoneScore>(terms, sign);
}

}  // namespace polyleaf
