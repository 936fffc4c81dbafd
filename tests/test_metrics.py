"""Metrics agree with scikit-learn's, with and without weights, whatever the number of outputs."""

import functools

import numpy as np
import pytest
from sklearn import metrics as reference

from polyleaf.metrics import _BLOCK_CELLS, make_metrics

RNG = np.random.default_rng(0)
N = 200
WEIGHT = RNG.random(N)


def measured(name, kind, y, prediction, weight):
    (metric,) = make_metrics(name, default="none", kind=kind)
    assert metric.name == name
    return metric, metric.function(y, prediction, weight)


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("width", [1, 4])
def test_regression_metrics(weight, width):
    y, prediction = RNG.normal(size=(2, N, width))
    for name, function in {
        "mse": reference.mean_squared_error,
        "mae": reference.mean_absolute_error,
        "r2": reference.r2_score,
    }.items():
        metric, value = measured(name, "regression", y, prediction, weight)
        assert value == pytest.approx(function(y, prediction, sample_weight=weight))
        assert metric.greater_is_better == (name == "r2")
    # The root is taken over all cells at once, not target by target.
    mse = reference.mean_squared_error(y, prediction, sample_weight=weight)
    assert measured("rmse", "regression", y, prediction, weight)[1] == pytest.approx(np.sqrt(mse))


def test_r2_of_a_constant_target():
    y = np.ones((5, 2))
    prediction = np.column_stack([np.ones(5), np.zeros(5)])
    assert measured("r2", "regression", y, prediction, None)[1] == pytest.approx(
        reference.r2_score(y, prediction)
    )


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_multiclass_metrics(weight):
    codes = RNG.integers(0, 5, N).astype(np.int32)
    p = RNG.dirichlet(np.ones(5), N)
    p[codes == 0] = [0, 1, 0, 0, 0]  # certain, and wrong: finite all the same
    loss = reference.log_loss(codes, p, labels=range(5), sample_weight=weight)
    accuracy = reference.accuracy_score(codes, p.argmax(axis=1), sample_weight=weight)
    assert measured("cross_entropy", "multiclass", codes, p, weight)[1] == pytest.approx(loss)
    assert measured("log_loss", "multiclass", codes, p, weight)[1] == pytest.approx(loss)
    metric, value = measured("accuracy", "multiclass", codes, p, weight)
    assert metric.greater_is_better
    assert value == pytest.approx(accuracy)
    metric, value = measured("error", "multiclass", codes, p, weight)
    assert not metric.greater_is_better
    assert value == pytest.approx(1 - accuracy)


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize(("kind", "width"), [("binary", 1), ("multilabel", 3)])
def test_label_metrics(weight, kind, width):
    y = RNG.integers(0, 2, (N, width)).astype(np.float64)
    p = RNG.random((N, width))
    p[:3] = [[0.0] * width, [1.0] * width, [0.5] * width]
    losses = [reference.log_loss(y[:, j], p[:, j], sample_weight=weight) for j in range(width)]
    accuracy = reference.accuracy_score(y, p > 0.5, sample_weight=weight)
    for name in ("binary_cross_entropy", "log_loss"):
        assert measured(name, kind, y, p, weight)[1] == pytest.approx(np.mean(losses))
    assert measured("accuracy", kind, y, p, weight)[1] == pytest.approx(accuracy)
    assert measured("error", kind, y, p, weight)[1] == pytest.approx(1 - accuracy)


def test_blocks_of_rows_give_the_mean_of_all():
    n_rows = _BLOCK_CELLS // 2 + 17
    y, prediction = RNG.normal(size=(2, n_rows, 3))
    assert measured("mae", "regression", y, prediction, None)[1] == pytest.approx(
        np.abs(y - prediction).mean()
    )


def test_several_metrics_keep_their_order():
    made = make_metrics(["accuracy", "log_loss"], default="cross_entropy", kind="multiclass")
    assert [metric.name for metric in made] == ["accuracy", "log_loss"]


def test_default():
    assert [metric.name for metric in make_metrics(None, default="rmse", kind="regression")] == ["rmse"]


def worst(y, prediction):
    return np.abs(y - prediction).max()


def test_callable_is_minimised_under_its_name():
    (metric,) = make_metrics(worst, default="rmse", kind="regression")
    assert (metric.name, metric.greater_is_better) == ("worst", False)
    assert metric.function(np.zeros((2, 1)), np.array([[1.0], [-3.0]]), None) == 3.0
    (metric,) = make_metrics([functools.partial(worst)], default="rmse", kind="regression")
    assert metric.name == "partial"


def test_callable_must_return_a_number():
    (metric,) = make_metrics(lambda y, p: "good", default="rmse", kind="regression")
    with pytest.raises(TypeError, match="eval_metric '<lambda>' must return a number; got 'good'"):
        metric.function(np.zeros((2, 1)), np.zeros((2, 1)), None)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("accuracy", "regression"), ("rmse", "binary"), ("cross_entropy", "multilabel"), ("auc", "multiclass")],
)
def test_metric_that_does_not_suit_is_refused(name, kind):
    with pytest.raises(
        ValueError, match=f"eval_metric '{name}' is not defined for a {kind} target; allowed are"
    ):
        make_metrics(name, default="rmse", kind=kind)


def test_same_name_twice_is_refused():
    with pytest.raises(ValueError, match="eval_metric has 'rmse' more than once"):
        make_metrics(["rmse", "rmse"], default="rmse", kind="regression")
