"""The score pass: a tree, the gradients and their sketch in one sweep are those of one after the other."""

from dataclasses import replace

import numpy as np
import pytest

from gradients_of import gradients_of
from polyleaf import PolyleafClassifier, _core
from polyleaf.growth.arrays import CpuArrays
from polyleaf.growth.score_pass import CpuScorePass
from polyleaf.losses.absolute_error import AbsoluteError
from polyleaf.losses.binary_cross_entropy import BinaryCrossEntropy
from polyleaf.losses.clipped_squared_error import ClippedSquaredError
from polyleaf.losses.cross_entropy import CrossEntropy
from polyleaf.losses.custom import CustomLoss
from polyleaf.losses.huber import Huber
from polyleaf.losses.quantile import Quantile
from polyleaf.losses.squared_error import SquaredError
from polyleaf.losses.tweedie import Tweedie
from polyleaf.metrics import Metric
from polyleaf.training.trainer import Trainer
from same_forest import assert_same_bits
from training_cases import CASES, CLASSES, X, squared

N_ROWS, N_OUTPUTS, N_LEAVES = 700, 40, 9
RNG = np.random.default_rng(0)
RAW = RNG.normal(size=(N_ROWS, N_OUTPUTS))
LEAF = RNG.integers(0, N_LEAVES, size=N_ROWS).astype(np.uint32)
VALUES = RNG.normal(size=(N_LEAVES, N_OUTPUTS)).astype(np.float32)
UNIT = 2.0 ** RNG.integers(-3, 4, size=N_OUTPUTS)
SCORES = RAW + UNIT * VALUES[LEAF].astype(np.float64)
TARGETS = RNG.normal(size=(N_ROWS, N_OUTPUTS))
LABELS = (TARGETS > 0).astype(np.float64)
LOSSES = {
    "classes": (CrossEntropy(N_OUTPUTS), LEAF.astype(np.int32)),
    "labels": (BinaryCrossEntropy(N_OUTPUTS), LABELS),
    "clipped": (ClippedSquaredError(N_OUTPUTS), LABELS),
    "targets": (SquaredError(N_OUTPUTS), TARGETS),
    "medians": (AbsoluteError(N_OUTPUTS), TARGETS),
    "quantiles": (Quantile(N_OUTPUTS, (0.3, 0.8)), TARGETS[:, ::2].copy()),
    "huber": (Huber(N_OUTPUTS, 0.5), TARGETS),
    "amounts": (Tweedie(N_OUTPUTS, 1.4), np.maximum(TARGETS, 0)),
    "callable": (CustomLoss(squared, SquaredError(N_OUTPUTS)), TARGETS),
}
COMPILED = [name for name in LOSSES if name != "callable"]


@pytest.mark.parametrize("name", LOSSES)
def test_losses_know_whether_they_are_compiled(name):
    loss, y = LOSSES[name]
    assert loss.compiled == isinstance(loss.formula(y), _core.Formula)


@pytest.mark.parametrize("name", CASES)
def test_a_training_is_that_of_adding_trees_at_once(name, monkeypatch):
    """Whatever is sampled, sketched or weighted, and where rows lie outside of the sample."""
    case = CASES[name]
    later = case.make(n_estimators=5).fit(X, case.y, case.weight)

    class AtOnce(CpuScorePass):
        def __init__(self, formula, scores, plan, n_threads):
            super().__init__(formula, scores, replace(plan, whole_trees=False), n_threads)

    monkeypatch.setattr("polyleaf.training.device.CpuScorePass", AtOnce)
    at_once = case.make(n_estimators=5).fit(X, case.y, case.weight)
    assert_same_bits(later, at_once)


@pytest.mark.parametrize("name", ["classes", "labels", "regression", "sampled", "gradient-based", "callable"])
def test_scores_that_are_looked_at_are_up_to_date(name, monkeypatch):
    """Those of the forest so far; and looking changes nothing."""
    case = CASES[name]
    expected = case.make(n_estimators=5).fit(X, case.y, case.weight)
    seen = []
    original = Trainer.round

    def round_and_look(self, number, learning_rate):
        grown = original(self, number, learning_rate)
        self.measure([Metric("nothing", False, lambda y, prediction, weight: 0.0)])
        seen.append(self._scores.scores().copy())
        return grown

    monkeypatch.setattr(Trainer, "round", round_and_look)
    assert_same_bits(case.make(n_estimators=5).fit(X, case.y, case.weight), expected)
    for number, raw in enumerate(seen, 1):
        np.testing.assert_array_equal(raw, expected._forest.predict_raw(X, number))


def swept(name, *, tree=True, with_hessian=True, sketch=None, n_threads=1):
    """Scores, gradient and Hessian after one sweep over `RAW`."""
    loss, y = LOSSES[name]
    formula = loss.formula(y)
    raw = RAW.copy()
    gradient = np.full(RAW.shape, np.nan, dtype=np.float32)
    hessian = np.full_like(gradient, np.nan) if with_hessian and formula.has_hessian else None
    scores = _core.ScorePass(raw, n_threads)
    if tree:
        scores.add(LEAF, VALUES, UNIT)
    scores.sweep(formula, gradient, hessian, sketch)
    return raw, gradient, hessian


@pytest.mark.parametrize("n_threads", [1, 2, 4])
@pytest.mark.parametrize("with_hessian", [False, True])
@pytest.mark.parametrize("name", COMPILED)
def test_gradients_after_a_tree(name, with_hessian, n_threads):
    """One pass, or two: the same scores and gradients."""
    raw, gradient, hessian = swept(name, with_hessian=with_hessian, n_threads=n_threads)
    np.testing.assert_array_equal(raw, SCORES)
    expected, expected_hessian = gradients_of(*LOSSES[name], SCORES)
    np.testing.assert_array_equal(gradient, expected)
    if hessian is not None:
        np.testing.assert_array_equal(hessian, expected_hessian)


@pytest.mark.parametrize("n_threads", [1, 2, 4])
@pytest.mark.parametrize("tree", [False, True])
@pytest.mark.parametrize("name", COMPILED)
def test_a_sketch_of_the_gradients(name, tree, n_threads):
    """Filled on the way, or afterwards: the same numbers."""
    matrix = np.random.default_rng(0).normal(size=(RAW.shape[1], 2))
    share = np.random.default_rng(1).random(RAW.shape[1])
    for columns in (matrix, None):
        sketch = CpuArrays(n_threads).sketch(len(RAW), columns, share, "p(1-p)")
        sketch.sums[:] = np.nan
        _, gradient, _ = swept(name, tree=tree, with_hessian=False, sketch=sketch.core, n_threads=n_threads)
        np.testing.assert_array_equal(sketch.sums, CpuArrays().row_sums(gradient, share, "p(1-p)"))
        if columns is None:
            assert sketch.mixtures is None
        else:
            np.testing.assert_allclose(sketch.mixtures, gradient @ matrix, rtol=1e-4, atol=1e-5)
            np.testing.assert_array_equal(sketch.mixtures, CpuArrays().project(gradient, matrix))


def test_trees_add_up():
    """A tree that comes before another was swept is added first; scores that are settled have all of them."""
    raw = RAW.copy()
    scores = _core.ScorePass(raw, 1)
    scores.add(LEAF, VALUES, UNIT)
    np.testing.assert_array_equal(raw, RAW)
    scores.add(LEAF, 2 * VALUES, UNIT)
    np.testing.assert_array_equal(raw, SCORES)
    for _ in range(2):
        scores.settle()
        np.testing.assert_array_equal(raw, SCORES + UNIT * (2 * VALUES)[LEAF].astype(np.float64))


def test_a_sketch_that_does_not_fit_is_refused():
    columns, out = np.zeros((2, 16), dtype=np.float32), np.empty((len(RAW), 2), dtype=np.float32)
    share = np.ones(RAW.shape[1])
    with pytest.raises(ValueError, match="matrix does not fit"):
        _core.Sketch(columns[:, :15].copy(), out)
    with pytest.raises(ValueError, match="matrix does not fit"):
        _core.Sketch(columns[:1], out)
    for some in ((columns, None), (None, out), (None, None, share)):
        with pytest.raises(ValueError, match="both or none"):
            _core.Sketch(*some)
    gradient = np.zeros(RAW.shape, dtype=np.float32)
    for values in (gradient[1:], np.zeros((len(RAW), 17), dtype=np.float32)):
        with pytest.raises(ValueError, match="other rows or outputs"):
            _core.Sketch(columns, out).fill(values, 1)
    for sums, shares in ((np.empty(len(RAW) - 1), share), (np.empty(len(RAW)), share[1:])):
        with pytest.raises(ValueError, match="other rows or outputs"):
            _core.Sketch(None, None, shares, "itself", sums).fill(gradient, 1)
    with pytest.raises(ValueError, match="in one piece"):
        _core.Sketch(columns, out).fill(np.asfortranarray(gradient[:, :16]), 1)


def test_a_tree_that_does_not_fit_is_refused():
    scores = _core.ScorePass(RAW.copy(), 1)
    with pytest.raises(ValueError, match="leaf is out of range"):
        scores.add(LEAF, VALUES[:-1], UNIT)
    with pytest.raises(ValueError, match="unit per output"):
        scores.add(LEAF, VALUES, UNIT[1:])
    for leaf, values in ((LEAF[1:], VALUES), (LEAF, VALUES[:, 1:].copy())):
        with pytest.raises(ValueError, match="other rows or outputs"):
            scores.add(leaf, values, UNIT)


def test_a_formula_that_does_not_fit_is_refused():
    loss, y = LOSSES["targets"]
    gradient = np.empty(RAW.shape, dtype=np.float32)
    scores = _core.ScorePass(RAW.copy(), 1)
    with pytest.raises(ValueError, match="other rows or outputs"):
        scores.sweep(loss.formula(y[1:]), gradient, None, None)
    for other in (RAW[1:], RAW[:, 1:]):
        with pytest.raises(ValueError, match="other rows or outputs"):
            loss.formula(y).gradients(other, gradient, None, 1)
    for wrong in (gradient[1:], gradient[:, 1:].copy()):
        with pytest.raises(ValueError, match="rows x outputs"):
            scores.sweep(loss.formula(y), wrong, None, None)
    with pytest.raises(ValueError, match="no Hessian"):
        scores.sweep(loss.formula(y), gradient, gradient.copy(), None)
    with pytest.raises(ValueError, match="a number per output"):
        _core.SquaredError(y, UNIT[1:])
    with pytest.raises(ValueError, match="a number per output"):
        _core.Huber(y, UNIT, UNIT[1:], 1.0, 1.0)
    for label in (-1, N_OUTPUTS):
        with pytest.raises(ValueError, match="label is out of range"):
            _core.Softmax(np.full(N_ROWS, label, dtype=np.int32), N_OUTPUTS, "p(1-p)")
    with pytest.raises(ValueError, match="unknown curvature"):
        _core.Softmax(np.zeros(N_ROWS, dtype=np.int32), N_OUTPUTS, "square")
    for column in (-1, N_OUTPUTS):
        with pytest.raises(ValueError, match="column is out of range"):
            _core.Pinball(y, np.full(3, column, dtype=np.int32), np.ones(3), np.ones(3))


def test_a_formula_keeps_its_targets():
    """Also those that were converted for it."""
    loss, y = LOSSES["targets"]
    expected, _ = gradients_of(loss, y, RAW)
    formula = loss.formula(np.asfortranarray(y.astype(np.float64)))
    found = np.empty_like(expected)
    _ = [np.full(y.shape, np.nan) for _ in range(10)]
    formula.gradients(RAW, found, None, 1)
    np.testing.assert_array_equal(found, expected)


def test_a_tree_of_one_leaf():
    """Where no split is found, all rows are in the first leaf."""
    model = PolyleafClassifier(n_estimators=3, min_split_gain=1e9).fit(X, CLASSES)
    assert model._forest.n_trees == 3
