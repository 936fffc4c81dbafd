#include "search/joint_score.hpp"

#include "gradients/full_hessian.hpp"
#include "search/monotone.hpp"
#include "search/output_terms.hpp"
#include "search/top_k.hpp"

namespace polyleaf {
namespace {

class SparseLeafScore : public JointScore {
 public:
  SparseLeafScore(const OutputTerms& terms, const SparseLeaves& sparse)
      : terms_(terms), sparse_(sparse), d_(static_cast<std::size_t>(terms.layout().n_outputs)) {}

  const SparseLeaves* sparse_leaves() const override { return &sparse_; }

  double children(const std::int32_t* left, const std::int32_t* totals, const Place&, double enough,
                  Scratch& s) const override {
    const double all = compute_terms(left, totals, s);
    if (all <= enough) return all;  // k of the terms are no more than all of them
    if (sparse_.restricted) {
      for (std::size_t j = 0; j < d_; ++j) s.left[j] += s.right[j];
      return top(s.left, s);
    }
    return top(s.left, s) + top(s.right, s);
  }

  double node(const std::int32_t* totals, const std::vector<std::int32_t>& leaf_outputs, const ValueBounds&,
              Scratch& s) const override {
    compute_terms(totals, totals, s);
    double score = 0.0;
    for (const std::int32_t j : leaf_outputs) score += s.left[static_cast<std::size_t>(j)];
    return score;
  }

  std::vector<std::int32_t> outputs_of_root(const std::int32_t* totals, Scratch& s) const override {
    compute_terms(totals, totals, s);
    return outputs(s.left, s);
  }

  void outputs_of_children(const std::int32_t* left, const std::int32_t* totals, std::vector<std::int32_t>& left_held,
                           std::vector<std::int32_t>& right_held, Scratch& s) const override {
    compute_terms(left, totals, s);
    if (sparse_.restricted) {
      for (std::size_t j = 0; j < d_; ++j) s.left[j] += s.right[j];
      left_held = right_held = outputs(s.left, s);
    } else {
      left_held = outputs(s.left, s);
      right_held = outputs(s.right, s);
    }
  }

 private:
  double compute_terms(const std::int32_t* left, const std::int32_t* totals, Scratch& s) const {
    if (s.other.size() < d_) s.other.resize(d_);
    return terms_.side_terms(left, totals, s.left, s.right);
  }

  double top(const std::vector<double>& terms, Scratch& s) const {
    return top_sum(terms, d_, static_cast<std::size_t>(sparse_.k), s.other);
  }
  std::vector<std::int32_t> outputs(const std::vector<double>& terms, Scratch& s) const {
    return top_positions(terms, d_, static_cast<std::size_t>(sparse_.k), s.other);
  }

  const OutputTerms& terms_;
  const SparseLeaves sparse_;
  const std::size_t d_;
};

class ExactScore : public JointScore {
 public:
  ExactScore(const Payload& payload, const Rules& rules)
      : payload_(payload), rules_(rules), d_(payload.layout.n_outputs) {}

  double children(const std::int32_t* left, const std::int32_t* totals, const Place&, double,
                  Scratch& s) const override {
    s.other.resize(payload_.layout.n_channels());
    for (std::size_t c = 0; c < s.other.size(); ++c) s.other[c] = left[c];
    const double score = quadratic(s);
    for (std::size_t c = 0; c < s.other.size(); ++c) s.other[c] = static_cast<double>(totals[c]) - left[c];
    return score + quadratic(s);
  }

  double node(const std::int32_t* totals, const std::vector<std::int32_t>&, const ValueBounds&,
              Scratch& s) const override {
    s.other.assign(totals, totals + payload_.layout.n_channels());
    return quadratic(s);
  }

 private:
  // G^T (H + lambda I)^-1 G of the sums in s.other. Rounding may leave a matrix with a tiny negative eigenvalue when
  // lambda is tiny as well: such a candidate scores 0.
  double quadratic(Scratch& s) const {
    const auto d = static_cast<std::size_t>(d_);
    s.left.resize(triangle(d));
    s.right.resize(d);
    for (std::size_t e = 0; e < s.left.size(); ++e) s.left[e] = s.other[1 + d + e] * payload_.hessian_unit[e];
    for (std::size_t j = 0; j < d; ++j) {
      s.left[triangle(j + 1) - 1] += rules_.reg_lambda;
      s.right[j] = s.other[1 + j] * payload_.gradient_unit[j];
    }
    if (!cholesky(s.left.data(), d_)) return 0.0;
    solve_lower(s.left.data(), d_, s.right.data());
    double score = 0.0;
    for (std::size_t j = 0; j < d; ++j) score += s.right[j] * s.right[j];
    return score;
  }

  const Payload& payload_;
  const Rules& rules_;
  const int d_;
};

}  // namespace

std::unique_ptr<JointScore> make_joint_score(const OutputTerms& terms, const SparseLeaves& sparse,
                                             const std::int8_t* monotone) {
  if (terms.layout().hessian == HessianKind::kFull) return std::make_unique<ExactScore>(terms.payload, terms.rules);
  // Leaves that hold all outputs are those of the plain objective, to the last bit.
  if (sparse.k > 0 && sparse.k < terms.layout().n_outputs) return std::make_unique<SparseLeafScore>(terms, sparse);
  if (monotone != nullptr) return make_monotone_score(terms, monotone);
  return nullptr;
}

}  // namespace polyleaf
