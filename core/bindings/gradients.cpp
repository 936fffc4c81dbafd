#include <algorithm>

#include "base/threads.hpp"
#include "bindings/arrays.hpp"
#include "bindings/rooms.hpp"
#include "gradients/losses.hpp"
#include "kernels/gradient.hpp"

namespace polyleaf {
namespace {

// Sums of the rows' gradients with the arrays they go to.
class Mixtures {
 public:
  Mixtures(Matrix<float> columns, OutMatrix<float> out, std::optional<Vector<double>> share, const std::string& term,
           std::optional<OutVector<double>> sums)
      : columns_(std::move(columns)),
        out_(std::move(out)),
        share_(std::move(share)),
        term_(term_of(term)),
        sums_(std::move(sums)) {
    expect(columns_.shape(1) % 16 == 0 && out_.shape(1) == columns_.shape(0), "the matrix does not fit");
    expect(share_.has_value() == sums_.has_value(), "shares and sums: both or none");
    expect(!sums_ || sums_->shape(0) == out_.shape(0), "arrays differ in size");
  }

  RowMixtures of(std::size_t n_rows, std::size_t n_outputs) {
    expect(out_.shape(0) == n_rows && columns_.shape(1) >= n_outputs && (!share_ || share_->shape(0) == n_outputs),
           "mixtures of other rows or outputs");
    return {columns_.data(),
            columns_.shape(1),
            static_cast<int>(columns_.shape(0)),
            out_.data(),
            share_ ? share_->data() : nullptr,
            term_,
            sums_ ? sums_->data() : nullptr};
  }

  void make(const RowMatrix<float>& values, int n_threads) {
    const std::size_t n = values.shape(0), d = values.shape(1);
    expect(values.stride(1) == 1 || d == 1, "rows are to be in one piece");
    const RowMixtures mixtures = of(n, d);
    nb::gil_scoped_release release;
    mix_rows(mixtures, values.data(), static_cast<std::size_t>(values.stride(0)), n, static_cast<int>(d), n_threads);
  }

 private:
  Matrix<float> columns_;
  OutMatrix<float> out_;
  std::optional<Vector<double>> share_;
  Term term_;
  std::optional<OutVector<double>> sums_;
};

// A tree on its way to the scores, with the arrays it consists of.
class TreeOfRows {
 public:
  TreeOfRows(Vector<std::uint32_t> leaf, Matrix<float> values, Vector<double> unit)
      : leaf_(std::move(leaf)), values_(std::move(values)), unit_(std::move(unit)) {
    expect(unit_.shape(0) == values_.shape(1), "a unit per output");
    for (std::size_t i = 0; i < leaf_.shape(0); ++i)
      expect(leaf_.data()[i] < values_.shape(0), "a leaf is out of range");
  }

  LeafValues of(std::size_t n_rows, std::size_t n_outputs) const {
    expect(leaf_.shape(0) == n_rows && values_.shape(1) == n_outputs, "a tree of other rows or outputs");
    return {leaf_.data(), values_.data(), unit_.data()};
  }

  void add_to(OutMatrix<double>& raw, int n_threads) const {
    const LeafValues tree = of(raw.shape(0), raw.shape(1));
    nb::gil_scoped_release release;
    add_leaf_values(tree, raw.shape(0), static_cast<int>(raw.shape(1)), raw.data(), n_threads);
  }

 private:
  Vector<std::uint32_t> leaf_;
  Matrix<float> values_;
  Vector<double> unit_;
};

// Per row: the weighted sum of a term of its values.
void weighted_sums(const RowMatrix<float>& values, const Vector<double>& weight, const std::string& term,
                   OutVector<double>& out, int n_threads) {
  constexpr std::size_t kBlockRows = 1024;
  const std::size_t n = values.shape(0), d = values.shape(1);
  expect(weight.shape(0) == d && out.shape(0) == n && (values.stride(1) == 1 || d == 1), "arrays differ in size");
  const Term kind = term_of(term);
  nb::gil_scoped_release release;
  parallel_for(n * d < kParallelWork ? 1 : n_threads, (n + kBlockRows - 1) / kBlockRows, [&](std::size_t block, int) {
    gradient_kernels().weighted_sums(values.data(), static_cast<std::size_t>(values.stride(0)), block * kBlockRows,
                                     std::min(n, (block + 1) * kBlockRows), static_cast<int>(d), weight.data(), kind,
                                     out.data());
  });
}

OnTheWay both(const TreeOfRows* tree, Mixtures* mixtures, const OutMatrix<double>& raw) {
  const std::size_t n = raw.shape(0), d = raw.shape(1);
  return {tree == nullptr ? LeafValues{} : tree->of(n, d), mixtures == nullptr ? RowMixtures{} : mixtures->of(n, d)};
}

void squared_error(OutMatrix<double>& raw, const Matrix<double>& y, const Vector<double>& unit,
                   OutMatrix<float>& gradient, int n_threads, const TreeOfRows* tree, Mixtures* mixtures) {
  const std::size_t n = raw.shape(0), d = raw.shape(1);
  expect(y.shape(0) == n && y.shape(1) == d && unit.shape(0) == d && gradient.shape(0) == n && gradient.shape(1) == d,
         "arrays of rows x outputs");
  const OnTheWay also = both(tree, mixtures, raw);
  nb::gil_scoped_release release;
  squared_error_gradients(also, raw.data(), y.data(), unit.data(), n, static_cast<int>(d), gradient.data(), n_threads);
}

void clipped_squared_error(const Matrix<double>& raw, const Matrix<double>& y, OutMatrix<float>& gradient,
                           int n_threads) {
  const std::size_t n = raw.shape(0), d = raw.shape(1);
  expect(y.shape(0) == n && y.shape(1) == d && gradient.shape(0) == n && gradient.shape(1) == d,
         "arrays of rows x outputs");
  nb::gil_scoped_release release;
  clipped_squared_error_gradients(raw.data(), y.data(), n, static_cast<int>(d), gradient.data(), n_threads);
}

void softmax(OutMatrix<double>& raw, const Vector<std::int32_t>& label, const std::string& curvature,
             OutMatrix<float>& gradient, std::optional<OutMatrix<float>>& hessian, int n_threads,
             const TreeOfRows* tree, Mixtures* mixtures) {
  const std::size_t n = raw.shape(0), d = raw.shape(1);
  expect(label.shape(0) == n && gradient.shape(0) == n && gradient.shape(1) == d &&
             (!hessian || (hessian->shape(0) == n && hessian->shape(1) == d)),
         "arrays of rows x outputs");
  for (std::size_t i = 0; i < n; ++i)
    expect(label.data()[i] >= 0 && static_cast<std::size_t>(label.data()[i]) < d, "a label is out of range");
  const Term kind = term_of(curvature);
  expect(kind != Term::kItself && kind != Term::kSquare, "unknown curvature");
  const OnTheWay also = both(tree, mixtures, raw);
  nb::gil_scoped_release release;
  softmax_gradients(also, raw.data(), label.data(), kind, n, static_cast<int>(d), gradient.data(),
                    hessian ? hessian->data() : nullptr, n_threads);
}

void logistic(OutMatrix<double>& raw, const Matrix<double>& y, OutMatrix<float>& gradient,
              std::optional<OutMatrix<float>>& hessian, int n_threads, const TreeOfRows* tree, Mixtures* mixtures) {
  const std::size_t n = raw.shape(0), d = raw.shape(1);
  expect(y.shape(0) == n && y.shape(1) == d && gradient.shape(0) == n && gradient.shape(1) == d &&
             (!hessian || (hessian->shape(0) == n && hessian->shape(1) == d)),
         "arrays of rows x outputs");
  const OnTheWay also = both(tree, mixtures, raw);
  nb::gil_scoped_release release;
  logistic_gradients(also, raw.data(), y.data(), n, static_cast<int>(d), gradient.data(),
                     hessian ? hessian->data() : nullptr, n_threads);
}

// Of one of the losses: probabilities from scores.
template <auto probabilities>
void predict_probabilities(const Matrix<double>& raw, OutMatrix<double>& out, int n_threads) {
  const std::size_t n = raw.shape(0), d = raw.shape(1);
  expect(d > 0 && out.shape(0) == n && out.shape(1) == d, "arrays of rows x outputs");
  nb::gil_scoped_release release;
  probabilities(raw.data(), n, static_cast<int>(d), out.data(), n_threads);
}

void pinball(const Matrix<double>& raw, const Matrix<double>& y, const Vector<std::int32_t>& column,
             const Vector<double>& above, const Vector<double>& below, OutMatrix<float>& gradient, int n_threads) {
  const std::size_t n = raw.shape(0), d = raw.shape(1);
  expect(y.shape(0) == n && column.shape(0) == d && above.shape(0) == d && below.shape(0) == d &&
             gradient.shape(0) == n && gradient.shape(1) == d,
         "arrays of rows x outputs");
  for (std::size_t j = 0; j < d; ++j)
    expect(column.data()[j] >= 0 && static_cast<std::size_t>(column.data()[j]) < y.shape(1),
           "a column is out of range");
  nb::gil_scoped_release release;
  pinball_gradients(raw.data(), y.data(), y.shape(1), column.data(), above.data(), below.data(), n, static_cast<int>(d),
                    gradient.data(), n_threads);
}

void huber(const Matrix<double>& raw, const Matrix<double>& y, const Vector<double>& unit, const Vector<double>& factor,
           double delta, double largest, OutMatrix<float>& gradient, OutMatrix<float>& hessian, int n_threads) {
  const std::size_t n = raw.shape(0), d = raw.shape(1);
  expect(y.shape(0) == n && y.shape(1) == d && unit.shape(0) == d && factor.shape(0) == d && gradient.shape(0) == n &&
             gradient.shape(1) == d && hessian.shape(0) == n && hessian.shape(1) == d,
         "arrays of rows x outputs");
  nb::gil_scoped_release release;
  huber_gradients(raw.data(), y.data(), unit.data(), factor.data(), delta, largest, n, static_cast<int>(d),
                  gradient.data(), hessian.data(), n_threads);
}

void log_link(const Matrix<double>& raw, const Matrix<double>& y, const Vector<double>& log_mean, double power,
              OutMatrix<float>& gradient, OutMatrix<float>& hessian, int n_threads) {
  const std::size_t n = raw.shape(0), d = raw.shape(1);
  expect(y.shape(0) == n && y.shape(1) == d && log_mean.shape(0) == d && gradient.shape(0) == n &&
             gradient.shape(1) == d && hessian.shape(0) == n && hessian.shape(1) == d,
         "arrays of rows x outputs");
  nb::gil_scoped_release release;
  log_link_gradients(raw.data(), y.data(), log_mean.data(), power, n, static_cast<int>(d), gradient.data(),
                     hessian.data(), n_threads);
}

}  // namespace

void bind_gradients(nb::module_& m) {
  nb::dict terms;
  for (std::size_t i = 0; i < std::size(kTermNames); ++i) terms[kTermNames[i]] = i;
  m.attr("TERMS") = terms;  // what is summed of a gradient, by name, as kernels number it
  nb::class_<Mixtures>(m, "Mixtures", "Weighted sums of each row's gradients, and of a term of them.")
      .def(nb::init<Matrix<float>, OutMatrix<float>, std::optional<Vector<double>>, const std::string&,
                    std::optional<OutVector<double>>>(),
           "columns"_a, "out"_a.noconvert(), "share"_a = nb::none(), "term"_a = "itself",
           "sums"_a.noconvert() = nb::none())
      .def("make", &Mixtures::make, "values"_a, "n_threads"_a);
  m.def("weighted_sums", &weighted_sums, "values"_a, "weight"_a, "term"_a, "out"_a.noconvert(), "n_threads"_a);
  nb::class_<TreeOfRows>(m, "TreeOfRows", "A tree that the next pass over the scores of its rows adds to them.")
      .def(nb::init<Vector<std::uint32_t>, Matrix<float>, Vector<double>>(), "leaf"_a, "values"_a, "unit"_a)
      .def("add_to", &TreeOfRows::add_to, "raw"_a.noconvert(), "n_threads"_a);
  m.def("squared_error", &squared_error, "raw"_a.noconvert(), "y"_a, "unit"_a, "gradient"_a.noconvert(), "n_threads"_a,
        "tree"_a.none() = nb::none(), "mixtures"_a.none() = nb::none());
  m.def("clipped_squared_error", &clipped_squared_error, "raw"_a, "y"_a, "gradient"_a.noconvert(), "n_threads"_a);
  m.def("softmax", &softmax, "raw"_a.noconvert(), "label"_a, "curvature"_a, "gradient"_a.noconvert(),
        "hessian"_a.noconvert().none(), "n_threads"_a, "tree"_a.none() = nb::none(), "mixtures"_a.none() = nb::none());
  m.def("logistic", &logistic, "raw"_a.noconvert(), "y"_a, "gradient"_a.noconvert(), "hessian"_a.noconvert().none(),
        "n_threads"_a, "tree"_a.none() = nb::none(), "mixtures"_a.none() = nb::none());
  m.def("softmax_probabilities", &predict_probabilities<softmax_probabilities>, "raw"_a, "out"_a.noconvert(),
        "n_threads"_a);
  m.def("logistic_probabilities", &predict_probabilities<logistic_probabilities>, "raw"_a, "out"_a.noconvert(),
        "n_threads"_a);
  m.def("pinball", &pinball, "raw"_a, "y"_a, "column"_a, "above"_a, "below"_a, "gradient"_a.noconvert(), "n_threads"_a);
  m.def("huber", &huber, "raw"_a, "y"_a, "unit"_a, "factor"_a, "delta"_a, "largest"_a, "gradient"_a.noconvert(),
        "hessian"_a.noconvert(), "n_threads"_a);
  m.def("log_link", &log_link, "raw"_a, "y"_a, "log_mean"_a, "power"_a, "gradient"_a.noconvert(),
        "hessian"_a.noconvert(), "n_threads"_a);
}

}  // namespace polyleaf
