"""The contract of callables (docs/custom-objectives.md), word by word; the examples of that page run."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from polyleaf import PolyleafClassifier, PolyleafRegressor

PAGE = Path(__file__).parents[2] / "docs" / "custom-objectives.md"
EXAMPLES = re.findall(
    r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
)


def test_the_objective_of_the_page_learns():
    names = {}
    exec(compile(EXAMPLES[0], str(PAGE), "exec"), names)
    history = names["model"].evals_result_["validation_0"]["mean_log_cosh"]
    assert min(history) < 0.95 * history[0]


X = np.random.default_rng(0).normal(size=(60, 3))
KINDS = {
    "regression": (PolyleafRegressor, X[:, :2], np.float64, (60, 2), 2),
    "two classes": (PolyleafClassifier, np.where(X[:, 0] > 0, "b", "a"), np.float64, (60, 1), 1),
    "classes": (PolyleafClassifier, np.digitize(X[:, 0], [-0.5, 0.5]), np.int32, (60,), 3),
    "labels": (PolyleafClassifier, (X[:, :2] > 0).astype(int), np.float64, (60, 2), 2),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_an_objective_gets(kind):
    """Shapes, dtypes, protection, and one call a round with the scores of the round before."""
    make, y, dtype, shape, d = KINDS[kind]
    calls = []

    def spy(coded, raw):
        assert coded.dtype == dtype
        assert coded.shape == shape
        assert not coded.flags.writeable
        assert raw.dtype == np.float64
        assert raw.shape == (60, d)
        calls.append(raw.copy())
        onehot = np.eye(d)[coded] if coded.ndim == 1 else coded
        gradient = raw - onehot
        raw[:] = np.nan  # a copy: nothing comes of it
        return gradient, np.ones_like(gradient)

    model = make(objective=spy, n_estimators=4, min_samples_leaf=5).fit(X, y)
    assert len(calls) == 4
    for number in range(1, 4):
        np.testing.assert_array_equal(calls[number], model._raw(X, number))


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (lambda g: g[:-1], r"the gradient has shape \(59, 2\), expected \(60, 2\)"),
        (lambda g: g + 0j, "the gradient holds complex numbers"),
        (lambda g: np.where(g == g[3, 1], np.nan, g), "the gradient of row 3, output 1 is nan;"),
        (lambda g: np.full(g.shape, "x"), "the gradient does not hold numbers"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_violations_name_the_objective(bad, words):
    def my_loss(y, raw):
        return bad(raw - y), np.ones_like(raw)

    with pytest.raises(ValueError, match=f"objective: my_loss: {words}"):
        PolyleafRegressor(objective=my_loss, n_estimators=9).fit(X, X[:, :2])


def test_an_instance_is_named_by_its_class():
    class MyLoss:
        def __call__(self, y, raw):
            return raw

    with pytest.raises(ValueError, match="objective: MyLoss: a callable must return a pair"):
        PolyleafRegressor(objective=MyLoss()).fit(X, X[:, 0])


def test_weights_are_applied_afterwards():
    weight = np.arange(60) % 3

    def squared(y, raw):
        return raw - y, np.ones_like(raw)

    def fitted(**params):
        model = PolyleafRegressor(n_estimators=5, min_samples_leaf=1, **params)
        return model.fit(X, X[:, :2], sample_weight=weight).predict(X)

    np.testing.assert_array_equal(fitted(objective=squared), fitted())


def test_a_negative_hessian_gives_leaves_of_zero():
    """There is no floor: where H + reg_lambda is not positive, the leaf says 0."""

    def concave(y, raw):
        return raw - y, np.full_like(raw, -1.0)

    model = PolyleafRegressor(objective=concave, n_estimators=3).fit(X, X[:, 0])
    np.testing.assert_array_equal(model.predict(X), np.full(60, math.fsum(X[:, 0]) / 60))
