#include "bindings/arrays.hpp"
#include "bindings/rooms.hpp"
#include "gradients/clipped_squared_error.hpp"
#include "gradients/huber.hpp"
#include "gradients/log_link.hpp"
#include "gradients/logistic.hpp"
#include "gradients/pinball.hpp"
#include "gradients/probabilities.hpp"
#include "gradients/score_pass.hpp"
#include "gradients/softmax.hpp"
#include "gradients/squared_error.hpp"

namespace polyleaf {
namespace {

// --- formulas --------------------------------------------------------------------------------------------------------

// A formula of a loss, and the array of targets that it reads.
template <class F, class Targets>
class WithTargets : public F {
 public:
  template <class... Arguments>
  explicit WithTargets(Targets y, Arguments&&... arguments)
      : F(y.data(), y.shape(0), std::forward<Arguments>(arguments)...), y_(std::move(y)) {}

 private:
  Targets y_;
};

using Numbers = Matrix<double>;
using Labels = Vector<std::int32_t>;

// Binds a formula by a function that makes it in place from its targets and whatever else it needs.
template <class F, class Targets, class Make, class... Names>
void bind_formula(nb::module_& m, const char* name, Make make, Names... names) {
  nb::class_<WithTargets<F, Targets>, Formula>(m, name).def("__init__", make, "y"_a, names...);
}

std::vector<double> copy_of(const Vector<double>& values, std::size_t size) {
  expect(values.shape(0) == size, "a number per output");
  return {values.data(), values.data() + size};
}

template <class F>
using OfNumbers = WithTargets<F, Numbers>;

void make_squared_error(OfNumbers<SquaredError>* self, Numbers y, const Vector<double>& unit) {
  std::vector<double> units = copy_of(unit, y.shape(1));
  new (self) OfNumbers<SquaredError>(std::move(y), std::move(units));
}

// Of formulas that need nothing but labels of 0 and 1.
template <class F>
void make_of_labels(OfNumbers<F>* self, Numbers y) {
  const int n_outputs = static_cast<int>(y.shape(1));
  new (self) OfNumbers<F>(std::move(y), n_outputs);
}

void make_softmax(WithTargets<Softmax, Labels>* self, Labels y, int n_outputs, const std::string& curvature) {
  for (std::size_t i = 0; i < y.shape(0); ++i)
    expect(y.data()[i] >= 0 && y.data()[i] < n_outputs, "a label is out of range");
  const Term kind = term_of(curvature);
  expect(kind != Term::kItself && kind != Term::kSquare, "unknown curvature");
  new (self) WithTargets<Softmax, Labels>(std::move(y), n_outputs, kind);
}

void make_pinball(OfNumbers<Pinball>* self, Numbers y, const Vector<std::int32_t>& column, const Vector<double>& above,
                  const Vector<double>& below) {
  const std::size_t n_outputs = column.shape(0), n_targets = y.shape(1);
  expect(above.shape(0) == n_outputs && below.shape(0) == n_outputs, "a number per output");
  std::vector<PinballOutput> outputs(n_outputs);
  for (std::size_t j = 0; j < n_outputs; ++j) {
    outputs[j] = {static_cast<std::size_t>(column.data()[j]), above.data()[j], below.data()[j]};
    expect(column.data()[j] >= 0 && outputs[j].column < n_targets, "a column is out of range");
  }
  new (self) OfNumbers<Pinball>(std::move(y), n_targets, std::move(outputs));
}

void make_huber(OfNumbers<Huber>* self, Numbers y, const Vector<double>& unit, const Vector<double>& factor,
                double delta, double largest) {
  const std::size_t n_outputs = y.shape(1);
  expect(unit.shape(0) == n_outputs && factor.shape(0) == n_outputs, "a number per output");
  std::vector<HuberOutput> outputs(n_outputs);
  for (std::size_t j = 0; j < n_outputs; ++j) outputs[j] = {unit.data()[j], factor.data()[j]};
  new (self) OfNumbers<Huber>(std::move(y), std::move(outputs), delta, largest);
}

void make_log_link(OfNumbers<LogLink>* self, Numbers y, const Vector<double>& log_mean, double power) {
  std::vector<double> means = copy_of(log_mean, y.shape(1));
  new (self) OfNumbers<LogLink>(std::move(y), std::move(means), power);
}

// Where a formula of these rows is to put its numbers; the block is that of all rows.
ScoreBlock checked_block(const Formula& formula, const double* scores, const OutMatrix<float>& gradient,
                         const std::optional<OutMatrix<float>>& hessian) {
  const std::size_t n = formula.n_rows();
  const auto d = static_cast<std::size_t>(formula.n_outputs());
  expect(gradient.shape(0) == n && gradient.shape(1) == d &&
             (!hessian || (hessian->shape(0) == n && hessian->shape(1) == d)),
         "arrays of rows x outputs");
  expect(!hessian || formula.has_hessian(), "this formula has no Hessian");
  return {scores, formula.n_outputs(), 0, n, gradient.data(), hessian ? hessian->data() : nullptr};
}

void gradients_of(const Formula& formula, const Matrix<double>& raw, OutMatrix<float>& gradient,
                  std::optional<OutMatrix<float>>& hessian, int n_threads) {
  expect(raw.shape(0) == formula.n_rows() && raw.shape(1) == static_cast<std::size_t>(formula.n_outputs()),
         "a formula of other rows or outputs");
  const ScoreBlock all_rows = checked_block(formula, raw.data(), gradient, hessian);
  nb::gil_scoped_release release;
  all_gradients(formula, all_rows, n_threads);
}

// --- the score pass --------------------------------------------------------------------------------------------------

// A sketch with the arrays it goes to.
class BoundSketch {
 public:
  BoundSketch(std::optional<Matrix<float>> columns, std::optional<OutMatrix<float>> mixtures,
              std::optional<Vector<double>> share, const std::string& term, std::optional<OutVector<double>> sums)
      : columns_(std::move(columns)),
        mixtures_(std::move(mixtures)),
        share_(std::move(share)),
        term_(term_of(term)),
        sums_(std::move(sums)) {
    expect(columns_.has_value() == mixtures_.has_value() && share_.has_value() == sums_.has_value(),
           "columns and mixtures, shares and sums: both or none");
    expect(!columns_ || (columns_->shape(1) % 16 == 0 && mixtures_->shape(1) == columns_->shape(0)),
           "the matrix does not fit");
  }

  Sketch of(std::size_t n_rows, std::size_t n_outputs) {
    expect((!columns_ || (mixtures_->shape(0) == n_rows && columns_->shape(1) >= n_outputs)) &&
               (!share_ || (sums_->shape(0) == n_rows && share_->shape(0) == n_outputs)),
           "a sketch of other rows or outputs");
    Sketch sketch;
    if (columns_) {
      sketch.columns = {columns_->data(), columns_->shape(1), static_cast<int>(columns_->shape(0))};
      sketch.mixtures = mixtures_->data();
    }
    if (share_) {
      sketch.share = share_->data();
      sketch.sums = sums_->data();
    }
    sketch.term = term_;
    return sketch;
  }

  void fill(const RowMatrix<float>& values, int n_threads) {
    const std::size_t n = values.shape(0), d = values.shape(1);
    expect(values.stride(1) == 1 || d == 1 || n == 0, "rows are to be in one piece");
    const Sketch sketch = of(n, d);
    const FloatRows rows = {values.data(), static_cast<std::size_t>(values.stride(0)), static_cast<int>(d), 0, n};
    nb::gil_scoped_release release;
    fill_sketch(sketch, rows, n_threads);
  }

 private:
  std::optional<Matrix<float>> columns_;
  std::optional<OutMatrix<float>> mixtures_;
  std::optional<Vector<double>> share_;
  Term term_;
  std::optional<OutVector<double>> sums_;
};

// Gradients to be made, with the arrays they are made of.
class BoundMadeGradients : public MadeGradients {
 public:
  // The formula must outlive them.
  BoundMadeGradients(const Formula& formula, OutMatrix<double> scores, std::optional<Matrix<float>> cell_weight,
                     bool own_hessian)
      : MadeGradients(formula, scores.data(), cell_weight ? cell_weight->data() : nullptr, own_hessian),
        scores_(std::move(scores)),
        cell_weight_(std::move(cell_weight)) {
    const std::size_t n = formula.n_rows();
    const auto d = static_cast<std::size_t>(formula.n_outputs());
    expect(scores_.shape(0) == n && scores_.shape(1) == d, "a formula of other rows or outputs");
    expect(!cell_weight_ || (cell_weight_->shape(0) == n && cell_weight_->shape(1) == d), "arrays of rows x outputs");
    expect(!own_hessian || formula.has_hessian(), "this formula has no Hessian");
  }

 private:
  OutMatrix<double> scores_;
  std::optional<Matrix<float>> cell_weight_;
};

// The arrays that a pending tree consists of.
struct TreeArrays {
  Vector<std::uint32_t> leaf;
  Matrix<float> values;
  Vector<double> unit;
};

class BoundScorePass {
 public:
  BoundScorePass(OutMatrix<double> scores, int n_threads)
      : scores_(std::move(scores)),
        pass_(scores_.data(), scores_.shape(0), static_cast<int>(scores_.shape(1)), n_threads) {
    expect(scores_.shape(1) > 0, "arrays of rows x outputs");
  }

  void add(Vector<std::uint32_t> leaf, Matrix<float> values, Vector<double> unit) {
    expect(leaf.shape(0) == pass_.n_rows() && values.shape(1) == scores_.shape(1), "a tree of other rows or outputs");
    expect(unit.shape(0) == values.shape(1), "a unit per output");
    for (std::size_t i = 0; i < leaf.shape(0); ++i) expect(leaf.data()[i] < values.shape(0), "a leaf is out of range");
    pass_.add({leaf.data(), values.data(), unit.data()});
    pending_ = TreeArrays{std::move(leaf), std::move(values), std::move(unit)};
  }

  void settle() {
    {
      nb::gil_scoped_release release;
      pass_.settle();
    }
    pending_.reset();
  }

  void sweep(const Formula& formula, OutMatrix<float>& gradient, std::optional<OutMatrix<float>>& hessian,
             BoundSketch* sketch) {
    expect(formula.n_rows() == pass_.n_rows() && formula.n_outputs() == pass_.n_outputs(),
           "a formula of other rows or outputs");
    const ScoreBlock block = checked_block(formula, scores_.data(), gradient, hessian);
    const Sketch filled = sketch == nullptr ? Sketch{} : sketch->of(scores_.shape(0), scores_.shape(1));
    {
      nb::gil_scoped_release release;
      pass_.sweep(formula, block.gradient, block.hessian, sketch == nullptr ? nullptr : &filled);
    }
    pending_.reset();
  }

  void sweep_made(BoundMadeGradients& made, BoundSketch* of_gradient, BoundSketch* of_hessian,
                  std::optional<Vector<double>>& weight, bool magnitudes) {
    const std::size_t n = scores_.shape(0), d = scores_.shape(1);
    expect(made.scores() == scores_.data() && made.n_rows() == n && made.n_outputs() == pass_.n_outputs(),
           "gradients of other scores");
    expect(of_hessian == nullptr || made.has_hessian(), "there is no Hessian to sketch");
    const double* weights = data_or_null(weight, n, "weight: one value per row");
    const Sketch first = of_gradient == nullptr ? Sketch{} : of_gradient->of(n, d);
    const Sketch second = of_hessian == nullptr ? Sketch{} : of_hessian->of(n, d);
    {
      nb::gil_scoped_release release;
      pass_.sweep(made, of_gradient == nullptr ? nullptr : &first, of_hessian == nullptr ? nullptr : &second, weights,
                  magnitudes);
    }
    pending_.reset();
  }

 private:
  OutMatrix<double> scores_;
  ScorePass pass_;
  std::optional<TreeArrays> pending_;
};

// Of one of the losses: probabilities from scores.
template <auto probabilities>
void predict_probabilities(const Matrix<double>& raw, OutMatrix<double>& out, int n_threads) {
  const std::size_t n = raw.shape(0), d = raw.shape(1);
  expect(d > 0 && out.shape(0) == n && out.shape(1) == d, "arrays of rows x outputs");
  nb::gil_scoped_release release;
  probabilities(raw.data(), n, static_cast<int>(d), out.data(), n_threads);
}

void bind_formulas(nb::module_& m) {
  nb::class_<Formula>(m, "Formula", "Gradient and Hessian of a loss, for rows with certain targets.")
      .def_prop_ro("has_hessian", &Formula::has_hessian)
      .def("gradients", &gradients_of, "raw"_a, "gradient"_a.noconvert(), "hessian"_a.noconvert().none(),
           "n_threads"_a);
  bind_formula<SquaredError, Numbers>(m, "SquaredError", &make_squared_error, "unit"_a);
  bind_formula<ClippedSquaredError, Numbers>(m, "ClippedSquaredError", &make_of_labels<ClippedSquaredError>);
  bind_formula<Softmax, Labels>(m, "Softmax", &make_softmax, "n_outputs"_a, "curvature"_a);
  bind_formula<Logistic, Numbers>(m, "Logistic", &make_of_labels<Logistic>);
  bind_formula<Pinball, Numbers>(m, "Pinball", &make_pinball, "column"_a, "above"_a, "below"_a);
  bind_formula<Huber, Numbers>(m, "Huber", &make_huber, "unit"_a, "factor"_a, "delta"_a, "largest"_a);
  bind_formula<LogLink, Numbers>(m, "LogLink", &make_log_link, "log_mean"_a, "power"_a);
}

}  // namespace

void bind_gradients(nb::module_& m) {
  nb::dict terms;
  for (std::size_t i = 0; i < std::size(kTermNames); ++i) terms[kTermNames[i]] = i;
  m.attr("TERMS") = terms;  // what is summed of a gradient, by name, as kernels number it
  bind_formulas(m);
  nb::class_<BoundSketch>(m, "Sketch", "Weighted sums of each row's gradients, and of a term of them.")
      .def(nb::init<std::optional<Matrix<float>>, std::optional<OutMatrix<float>>, std::optional<Vector<double>>,
                    const std::string&, std::optional<OutVector<double>>>(),
           "columns"_a.none(), "mixtures"_a.noconvert().none(), "share"_a = nb::none(), "term"_a = "itself",
           "sums"_a.noconvert() = nb::none())
      .def("fill", &BoundSketch::fill, "values"_a, "n_threads"_a);
  nb::class_<MadeGradients>(m, "MadeGradients", "Gradients that are not stored: made when they are asked for.")
      .def_prop_ro("shape", [](const MadeGradients& made) { return nb::make_tuple(made.n_rows(), made.n_outputs()); })
      .def_prop_ro("has_hessian", &MadeGradients::has_hessian);
  nb::class_<BoundMadeGradients, MadeGradients>(m, "GradientsOfScores", "Those of a formula at the scores of a pass.")
      .def(nb::init<const Formula&, OutMatrix<double>, std::optional<Matrix<float>>, bool>(), "formula"_a,
           "scores"_a.noconvert(), "cell_weight"_a.noconvert().none(), "own_hessian"_a, nb::keep_alive<1, 2>());
  nb::class_<BoundScorePass>(m, "ScorePass", "Scores of the training rows, and the tree not yet added to them.")
      .def(nb::init<OutMatrix<double>, int>(), "scores"_a.noconvert(), "n_threads"_a)
      .def("add", &BoundScorePass::add, "leaf"_a, "values"_a, "unit"_a)
      .def("settle", &BoundScorePass::settle)
      .def("sweep", &BoundScorePass::sweep, "formula"_a, "gradient"_a.noconvert(), "hessian"_a.noconvert().none(),
           "sketch"_a.none())
      .def("sweep_made", &BoundScorePass::sweep_made, "made"_a, "of_gradient"_a.none(), "of_hessian"_a.none(),
           "weight"_a.none(), "magnitudes"_a);
  m.def("softmax_probabilities", &predict_probabilities<softmax_probabilities>, "raw"_a, "out"_a.noconvert(),
        "n_threads"_a);
  m.def("logistic_probabilities", &predict_probabilities<logistic_probabilities>, "raw"_a, "out"_a.noconvert(),
        "n_threads"_a);
}

}  // namespace polyleaf
