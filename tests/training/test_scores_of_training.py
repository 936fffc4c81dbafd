"""The last tree is added to the scores by the pass that needs them: the bits of adding it at once."""

import numpy as np
import pytest

from polyleaf import PolyleafClassifier, _core
from polyleaf.growth.arrays import CpuArrays
from polyleaf.losses.base import OnTheWay
from polyleaf.losses.binary_cross_entropy import BinaryCrossEntropy
from polyleaf.losses.cross_entropy import CrossEntropy
from polyleaf.losses.quantile import Quantile
from polyleaf.losses.squared_error import SquaredError
from polyleaf.metrics import Metric
from polyleaf.training.trainer import Trainer
from same_forest import assert_same_bits
from training_cases import CASES, CLASSES, X

N_ROWS, N_OUTPUTS, N_LEAVES = 700, 40, 9
RNG = np.random.default_rng(0)
RAW = RNG.normal(size=(N_ROWS, N_OUTPUTS))
LEAF = RNG.integers(0, N_LEAVES, size=N_ROWS).astype(np.uint32)
VALUES = RNG.normal(size=(N_LEAVES, N_OUTPUTS)).astype(np.float32)
UNIT = 2.0 ** RNG.integers(-3, 4, size=N_OUTPUTS)
SCORES = RAW + UNIT * VALUES[LEAF].astype(np.float64)
TARGETS = RNG.normal(size=(N_ROWS, N_OUTPUTS))
LOSSES = {
    "classes": (lambda: CrossEntropy(N_OUTPUTS), LEAF.astype(np.int32)),
    "labels": (lambda: BinaryCrossEntropy(N_OUTPUTS), (TARGETS > 0).astype(np.float64)),
    "targets": (lambda: SquaredError(N_OUTPUTS), TARGETS),
    "quantiles": (lambda: Quantile(N_OUTPUTS, (0.3,)), TARGETS),
}


@pytest.mark.parametrize("name", CASES)
def test_a_training_is_that_of_adding_trees_at_once(name, monkeypatch):
    """Whatever is sampled, sketched or weighted, and where rows lie outside of the sample."""
    case = CASES[name]
    later = case.make(n_estimators=5).fit(X, case.y, case.weight)
    monkeypatch.setattr(Trainer, "_adds_later", lambda self: False)
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
        seen.append(self._raw.copy())
        return grown

    monkeypatch.setattr(Trainer, "round", round_and_look)
    assert_same_bits(case.make(n_estimators=5).fit(X, case.y, case.weight), expected)
    for number, raw in enumerate(seen, 1):
        np.testing.assert_array_equal(raw, expected._forest.predict_raw(X, number))


@pytest.mark.parametrize("n_threads", [1, 2, 4])
@pytest.mark.parametrize("with_hessian", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_after_a_tree(name, with_hessian, n_threads):
    """One pass, or two: the same scores and gradients."""
    make, y = LOSSES[name]
    raw = RAW.copy()
    tree = _core.TreeOfRows(LEAF, VALUES, UNIT)
    gradient, hessian = make().gradients_with(
        OnTheWay(tree, None), y, raw, n_threads, with_hessian=with_hessian
    )
    np.testing.assert_array_equal(raw, SCORES)
    expected, expected_hessian = make().gradients(y, SCORES.copy(), 1)
    np.testing.assert_array_equal(gradient, expected)
    if with_hessian and expected_hessian is not None:
        np.testing.assert_array_equal(hessian, expected_hessian)
    else:
        assert hessian is None


@pytest.mark.parametrize("n_threads", [1, 2, 4])
@pytest.mark.parametrize("with_tree", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_mixtures_of_the_gradients(name, with_tree, n_threads):
    """Made on the way, or afterwards: the same numbers."""
    make, y = LOSSES[name]
    matrix = np.random.default_rng(0).normal(size=(RAW.shape[1], 2))
    share = np.random.default_rng(1).random(RAW.shape[1])
    arrays = CpuArrays(n_threads)
    mixtures = arrays.mixtures(len(RAW), matrix, share, "p(1-p)")
    mixtures.mixed[:] = np.nan
    mixtures.sums[:] = np.nan
    tree = _core.TreeOfRows(LEAF, VALUES, UNIT) if with_tree else None
    gradient, _ = make().gradients_with(
        OnTheWay(tree, mixtures.core), y, RAW.copy(), n_threads, with_hessian=False
    )
    np.testing.assert_allclose(mixtures.mixed, gradient @ matrix, rtol=1e-4, atol=1e-5)
    mixed, sums = CpuArrays().project_and_sum(gradient, matrix, share, "p(1-p)")
    np.testing.assert_array_equal(mixtures.mixed, mixed)
    np.testing.assert_array_equal(mixtures.sums, sums)
    np.testing.assert_array_equal(mixtures.mixed, CpuArrays().project(gradient, matrix))
    np.testing.assert_array_equal(mixtures.sums, CpuArrays().row_sums(gradient, share, "p(1-p)"))


def test_mixtures_that_do_not_fit_are_refused():
    columns, out = np.zeros((2, 16), dtype=np.float32), np.empty((len(RAW), 2), dtype=np.float32)
    with pytest.raises(ValueError, match="matrix does not fit"):
        _core.Mixtures(columns[:, :15].copy(), out)
    with pytest.raises(ValueError, match="matrix does not fit"):
        _core.Mixtures(columns[:1], out)
    with pytest.raises(ValueError, match="both or none"):
        _core.Mixtures(columns, out, np.ones(RAW.shape[1]))
    with pytest.raises(ValueError, match="differ in size"):
        _core.Mixtures(columns, out, np.ones(RAW.shape[1]), "itself", np.empty(len(RAW) - 1))
    gradient = np.zeros(RAW.shape, dtype=np.float32)
    for values in (gradient[1:], np.zeros((len(RAW), 17), dtype=np.float32)):
        with pytest.raises(ValueError, match="other rows or outputs"):
            _core.Mixtures(columns, out).make(values, 1)
    with pytest.raises(ValueError, match="in one piece"):
        _core.Mixtures(columns, out).make(np.asfortranarray(gradient), 1)


def test_a_tree_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="leaf is out of range"):
        _core.TreeOfRows(LEAF, VALUES[:-1], UNIT)
    with pytest.raises(ValueError, match="unit per output"):
        _core.TreeOfRows(LEAF, VALUES, UNIT[1:])
    tree = _core.TreeOfRows(LEAF, VALUES, UNIT)
    for raw in (RAW[1:].copy(), np.ascontiguousarray(RAW[:, 1:])):
        with pytest.raises(ValueError, match="other rows or outputs"):
            tree.add_to(raw, 1)


def test_a_tree_of_one_leaf():
    """Where no split is found, all rows are in the first leaf."""
    model = PolyleafClassifier(n_estimators=3, min_split_gain=1e9).fit(X, CLASSES)
    assert model._forest.n_trees == 3
