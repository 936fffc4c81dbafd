"""Metrics agree with scikit-learn's, with and without weights, whatever the number of outputs."""

import doctest
import functools
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from sklearn import metrics as reference

from polyleaf import PolyleafClassifier, PolyleafRegressor
from polyleaf.metrics import (
    make_metrics,
    ndcg_at_k,
    precision_at_k,
    ranking,
    regression,
    rmse_per_output,
    top1_accuracy,
)
from polyleaf.metrics.average import BLOCK_CELLS
from polyleaf.params.validation import validate_params

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


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_rmse_per_output(weight):
    y, prediction = RNG.normal(size=(2, N, 4))
    expected = reference.root_mean_squared_error(
        y, prediction, sample_weight=weight, multioutput="raw_values"
    )
    np.testing.assert_allclose(rmse_per_output(y, prediction, weight), expected)
    np.testing.assert_allclose(rmse_per_output(y[:, 1], prediction[:, 1], weight), expected[1:2])
    # The overall figure is their quadratic mean.
    overall = measured("rmse", "regression", y, prediction, weight)[1]
    assert np.sqrt(np.mean(expected**2)) == pytest.approx(overall)


@pytest.mark.parametrize(
    ("y", "prediction", "weight", "message"),
    [
        ([1.0, 2.0], [1.0], None, r"y has shape \(2,\) and prediction \(1,\)"),
        ([[1.0], [2.0]], [1.0, 2.0], None, "y has shape"),
        ([], [], None, "at least one row"),
        ([1.0, 2.0], ["a", "b"], None, "prediction"),
        ([1.0, 2.0], [1.0, 2.0], [1.0], r"weight has shape \(1,\)"),
    ],
)
def test_rmse_per_output_refuses(y, prediction, weight, message):
    with pytest.raises(ValueError, match=message):
        rmse_per_output(y, prediction, weight)


@pytest.mark.parametrize("exponent", [-1000, -660, -256, 256, 700, 990])
@pytest.mark.parametrize("name", ["rmse", "rrmse", "r2"])
def test_squares_of_targets_of_any_size_stay_within_float64(name, exponent):
    """A power of two changes no bit but the size, also where squares would overflow or vanish."""
    y, prediction = RNG.normal(size=(2, N, 3))
    y[:, 2] = prediction[:, 2] = 0.0
    unit = 2.0**exponent
    value = measured(name, "regression", y, prediction, WEIGHT)[1]
    other = measured(name, "regression", y * unit, prediction * unit, WEIGHT)[1]
    assert other == (value * unit if name == "rmse" else value)
    units = np.array([unit, 1.0, 1.0])
    mixed = measured(name, "regression", y * units, prediction * units, WEIGHT)[1]
    assert 0 < mixed < np.inf if name == "rmse" else mixed == value


@pytest.mark.parametrize("size", [1e-200, 1e290])
def test_early_stopping_by_targets_of_any_size(size):
    X, noise = RNG.normal(size=(2, 400, 3))
    model = PolyleafRegressor(learning_rate=0.3, max_depth=2, n_jobs=1)
    model.fit(X, (X[:, :2] + 0.1 * noise[:, :2]) * size)
    values = np.array(model.evals_result_["held_out"]["rmse"]) / size
    assert model.n_estimators_ > 5
    assert 0 < values[model.best_iteration_] < 0.8 * values[0] < 2


@pytest.mark.parametrize("size", [1e-200, 1e290])
def test_a_mean_squared_error_that_has_no_room_is_refused(size):
    """It would be 0 or infinite in all rounds."""
    X = RNG.normal(size=(200, 3))
    for metric in ("mse", "mse_per_target"):
        model = PolyleafRegressor(n_estimators=2, early_stopping_rounds=1, eval_metric=metric)
        with pytest.raises(ValueError, match=r"eval_metric 'mse': the largest number of y is .* take 'rmse'"):
            model.fit(X, X * size)
        model.fit(X, X * 1e100)


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


# ---- Rankings of labels -------------------------------------------------------------------------------

D = 12
LABELS = (RNG.random((N, D)) < 0.25).astype(np.float64)
LABELS[:7] = 0  # rows without a label
LABELS[7:9] = 1
SCORES = RNG.permuted(np.tile(np.arange(D) / D, (N, 1)), axis=1)  # no ties
CODES = RNG.integers(0, D, N)
SPARSE_FORMS = [
    scipy.sparse.csr_array,
    scipy.sparse.csr_matrix,
    scipy.sparse.coo_array,
    scipy.sparse.csc_matrix,
]


def best_first(scores):
    """Columns by falling score, ties to the lower one."""
    return np.argsort(-scores, axis=1, kind="stable")


def by_hand(y, scores, k):
    """Precision and nDCG of every row, one row at a time."""
    precision, ndcg = [], []
    for truth, ranked in zip(y, best_first(scores), strict=True):
        found = [truth[j] for j in ranked[:k]]
        ideal = sorted(truth, reverse=True)[:k]
        precision.append(sum(found) / k)
        gain, best = (sum(x / np.log2(i + 2) for i, x in enumerate(one)) for one in (found, ideal))
        ndcg.append(gain / best if best else 0.0)
    return np.array(precision), np.array(ndcg)


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("k", [1, 2, 5, D])
def test_rankings_of_labels(weight, k):
    precision, ndcg = (np.average(rows, weights=weight) for rows in by_hand(LABELS, SCORES, k))
    assert precision_at_k(LABELS, SCORES, k, weight) == pytest.approx(precision)
    assert ndcg_at_k(LABELS, SCORES, k, weight) == pytest.approx(ndcg)
    expected = reference.ndcg_score(LABELS, SCORES, k=k, sample_weight=weight)
    assert ndcg_at_k(LABELS, SCORES, k, weight) == pytest.approx(expected)
    for name, value in [(f"precision@{k}", precision), (f"ndcg@{k}", ndcg)]:
        metric, found = measured(name, "multilabel", LABELS, SCORES, weight)
        assert metric.greater_is_better
        assert found == pytest.approx(value)


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("k", [1, 3, D - 1])
def test_rankings_of_classes(weight, k):
    """A class is one true label: precision@k is the top-k accuracy over k."""
    one_hot = np.eye(D)[CODES]
    top_k = reference.top_k_accuracy_score(CODES, SCORES, k=k, sample_weight=weight, labels=range(D))
    ndcg = reference.ndcg_score(one_hot, SCORES, k=k, sample_weight=weight)
    for y in (CODES, CODES.astype(np.int32), one_hot):
        assert precision_at_k(y, SCORES, k, weight) == pytest.approx(top_k / k)
        assert ndcg_at_k(y, SCORES, k, weight) == pytest.approx(ndcg)
    codes = CODES.astype(np.int32)
    assert measured(f"precision@{k}", "multiclass", codes, SCORES, weight)[1] == pytest.approx(top_k / k)
    assert measured(f"ndcg@{k}", "multiclass", codes, SCORES, weight)[1] == pytest.approx(ndcg)


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_top1_accuracy(weight):
    right = LABELS[np.arange(N), SCORES.argmax(axis=1)]
    assert right[:7].sum() == 0
    expected = np.average(right, weights=weight)
    assert top1_accuracy(LABELS, SCORES, weight) == pytest.approx(expected)
    metric, value = measured("top1_accuracy", "multilabel", LABELS, SCORES, weight)
    assert metric.greater_is_better
    assert value == pytest.approx(expected)
    accuracy = reference.accuracy_score(CODES, SCORES.argmax(axis=1), sample_weight=weight)
    assert top1_accuracy(CODES, SCORES, weight) == pytest.approx(accuracy)


def test_ties_go_to_the_lower_label():
    scores = np.array([[0.5, 0.7, 0.5, 0.7, 0.5], [0.0] * 5, [np.inf, 1, -np.inf, -np.inf, np.inf]])
    truths = np.eye(5)
    order = [[1, 3, 0, 2, 4], [0, 1, 2, 3, 4], [0, 4, 1, 2, 3]]
    for row, ranked in enumerate(order):
        for j in range(5):
            place = ranked.index(j)
            for k in range(1, 6):
                y, score = truths[[j]], scores[[row]]
                assert precision_at_k(y, score, k) == pytest.approx((place < k) / k)
                assert ndcg_at_k(y, score, k) == pytest.approx((place < k) / np.log2(place + 2))
            assert top1_accuracy(truths[[j]], scores[[row]]) == (place == 0)


def test_ties_are_settled_as_a_stable_sort_does():
    scores = RNG.integers(0, 4, (N, D)).astype(np.float64)
    for k in (1, 2, 5, D):
        precision, ndcg = by_hand(LABELS, scores, k)
        assert precision_at_k(LABELS, scores, k) == pytest.approx(precision.mean())
        assert ndcg_at_k(LABELS, scores, k) == pytest.approx(ndcg.mean())


@pytest.mark.parametrize("form", SPARSE_FORMS)
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_sparse_labels_and_scores(form, weight):
    few = np.where(SCORES > 0.7, SCORES - 0.8, 0.0)  # what is not stored ranks above what is negative
    y = form(LABELS)
    before = y.toarray()
    for k in (1, 5):
        for scores in (SCORES, few):
            for given in (scores, form(scores), scores.astype(np.float32)):
                expected = precision_at_k(LABELS, scores, k, weight), ndcg_at_k(LABELS, scores, k, weight)
                found = precision_at_k(y, given, k, weight), ndcg_at_k(y, given, k, weight)
                assert found == expected
    assert top1_accuracy(y, SCORES, weight) == top1_accuracy(LABELS, SCORES, weight)
    np.testing.assert_array_equal(y.toarray(), before)


def test_sparse_labels_may_store_zeros_and_integers():
    y = scipy.sparse.csr_array(LABELS.astype(np.int8))
    y.data[:40] = 0
    assert precision_at_k(y, SCORES, 3) == precision_at_k(y.toarray(), SCORES, 3)
    assert precision_at_k(LABELS.astype(bool), SCORES, 3) == precision_at_k(LABELS, SCORES, 3)


@pytest.mark.parametrize(
    "name",
    ["binary_cross_entropy", "log_loss", "accuracy", "error", "top1_accuracy", "precision@3", "ndcg@3"],
)
def test_every_metric_of_labels_takes_sparse_ones(name):
    p = 0.01 + 0.98 * SCORES
    dense = measured(name, "multilabel", LABELS, p, WEIGHT)[1]
    assert measured(name, "multilabel", scipy.sparse.csr_matrix(LABELS), p, WEIGHT)[1] == dense


def test_many_sparse_labels_are_never_dense():
    n_rows, n_labels = 400, 20_000
    y = scipy.sparse.random_array((n_rows, n_labels), density=5 / n_labels, format="csr", rng=RNG)
    y.data[:] = 1
    scores = y + scipy.sparse.random_array((n_rows, n_labels), density=5 / n_labels, format="csr", rng=RNG)
    tracemalloc.start()
    value = ndcg_at_k(y, scores, 5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert value > 0.9
    assert peak < n_rows * n_labels * 8 / 10


def test_nan_ranks_last_while_training():
    """A callable objective may lead to NaN; the run goes on."""
    p = np.array([[np.nan, 0.1, 0.3], [np.nan] * 3])
    y = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    assert measured("precision@1", "multilabel", y, p, None)[1] == 1.0
    assert measured("precision@2", "multilabel", y, p, None)[1] == 0.5


@pytest.mark.parametrize("k", [13, 100])
def test_k_beyond_the_labels_is_refused(k):
    for function in (precision_at_k, ndcg_at_k):
        with pytest.raises(ValueError, match=f"k={k} ranks 12 labels, so k must be from 1 to 12"):
            function(LABELS, SCORES, k)
    name = f"precision@{k}"
    with pytest.raises(ValueError, match=f"eval_metric '{name}' ranks 12 labels"):
        make_metrics(name, default="accuracy", kind="multilabel", n_labels=D)
    with pytest.raises(ValueError, match=f"eval_metric '{name}' ranks 12 labels"):
        measured(name, "multilabel", LABELS, SCORES, None)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"k": 0}, ValueError, "k must be from 1 to 12"),
        ({"k": 1.0}, TypeError, "k must be an int; got 1.0"),
        ({"k": True}, TypeError, "k must be an int"),
        ({"y": LABELS[:, :3]}, ValueError, r"y has shape \(200, 3\), but score has shape \(200, 12\)"),
        ({"y": LABELS[:5]}, ValueError, r"y has shape \(5, 12\)"),
        ({"y": scipy.sparse.csr_array(LABELS[:5])}, ValueError, r"y has shape \(5, 12\)"),
        ({"y": LABELS / 2}, ValueError, "zeros and ones only"),
        ({"y": LABELS.astype(str)}, ValueError, "zeros and ones only"),
        ({"y": scipy.sparse.csr_array(2 * LABELS)}, ValueError, "zeros and ones only"),
        ({"y": scipy.sparse.csr_array(np.where(LABELS == 1, np.nan, 0))}, ValueError, "zeros and ones only"),
        ({"y": CODES + 1}, ValueError, "integers from 0 to 11"),
        ({"y": CODES - 1}, ValueError, "integers from 0 to 11"),
        ({"y": CODES.astype(float)}, ValueError, "integers from 0 to 11"),
        ({"score": SCORES[0]}, ValueError, r"score has shape \(12,\)"),
        ({"score": SCORES[:0]}, ValueError, r"score has shape \(0, 12\)"),
        ({"score": np.where(SCORES > 0.9, np.nan, SCORES)}, ValueError, "score contains NaN"),
        ({"score": scipy.sparse.csr_array(SCORES * np.nan)}, ValueError, "score contains NaN"),
        ({"weight": -WEIGHT}, ValueError, "weight must be finite and >= 0"),
        ({"weight": WEIGHT[:3]}, ValueError, r"weight has shape \(3,\)"),
    ],
)
def test_rankings_refuse(change, error, message):
    for function in (precision_at_k, ndcg_at_k):
        with pytest.raises(error, match=message):
            function(**{"y": LABELS, "score": SCORES, "k": 2, **change})


def test_the_same_sparse_label_twice_is_refused():
    y = scipy.sparse.csr_array((np.ones(2), np.array([1, 1]), np.array([0, 2])), shape=(1, 3))
    with pytest.raises(ValueError, match="zeros and ones only"):
        precision_at_k(y, [[0.1, 0.2, 0.3]], 1)
    assert y.nnz == 2


@pytest.mark.parametrize("value", ["precision@5", ["ndcg@10", "precision@1", "top1_accuracy"]])
def test_rankings_are_valid_parameters(value):
    validate_params({"eval_metric": value}, "classifier")


@pytest.mark.parametrize(
    "value",
    ["precision@0", "precision@-1", "precision@05", "precision@", "precision", "recall@5", "precision@1.5"],
)
def test_what_is_no_ranking_is_refused(value):
    with pytest.raises(ValueError, match=f"eval_metric must be .*got '{value}'"):
        validate_params({"eval_metric": value}, "classifier")
    with pytest.raises(ValueError, match=f"eval_metric '{value}' is not defined for a multilabel target"):
        make_metrics(value, default="accuracy", kind="multilabel")


def test_k_itself_must_be_a_number():
    with pytest.raises(ValueError, match=r"eval_metric 'precision@k' .*ndcg@k with a number for k\."):
        make_metrics("precision@k", default="accuracy", kind="multilabel")


def test_rankings_are_for_the_classifier():
    with pytest.raises(ValueError, match="eval_metric must be"):
        validate_params({"eval_metric": "precision@5"}, "regressor")


def test_early_stopping_on_a_ranking():
    X = RNG.normal(size=(N, 4))
    y = (X + 0.5 * RNG.normal(size=X.shape) > 0.5).astype(int)
    model = PolyleafClassifier(
        n_estimators=30,
        max_depth=3,
        eval_metric=["top1_accuracy", "ndcg@2", "precision@2"],
        early_stopping_rounds=4,
    )
    model.fit(X[50:], y[50:], eval_set=(X[:50], y[:50]))
    history = model.evals_result_["validation_0"]
    assert list(history) == ["top1_accuracy", "ndcg@2", "precision@2"]
    assert model.best_iteration_ == int(np.argmax(history["precision@2"]))
    p = model.predict_proba(X[:50])
    assert history["precision@2"][model.best_iteration_] == pytest.approx(precision_at_k(y[:50], p, 2))


def test_examples():
    for module in (ranking, regression):
        done = doctest.testmod(module)
        assert done.attempted > 0
        assert done.failed == 0


def test_blocks_of_rows_give_the_mean_of_all():
    n_rows = BLOCK_CELLS // 2 + 17
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
    [
        ("accuracy", "regression"),
        ("rmse", "binary"),
        ("cross_entropy", "multilabel"),
        ("auc", "regression"),
        ("mape", "multiclass"),
        ("rmse_per_target", "binary"),
        ("auc_per_target", "multiclass"),
        ("psp@1", "binary"),
        ("precision@1", "regression"),
        ("ndcg@1", "binary"),
        ("top1_accuracy", "multiclass"),
    ],
)
def test_metric_that_does_not_suit_is_refused(name, kind):
    with pytest.raises(
        ValueError, match=f"eval_metric '{name}' is not defined for a {kind} target; allowed are"
    ):
        make_metrics(name, default="rmse", kind=kind)


def test_same_name_twice_is_refused():
    with pytest.raises(ValueError, match="eval_metric has 'rmse' more than once"):
        make_metrics(["rmse", "rmse"], default="rmse", kind="regression")


@pytest.mark.parametrize("name", ["rrmse", "r2", "rmse", "mae"])
@pytest.mark.parametrize("weights", ["none", "rows", "cells", "an unobserved target"])
def test_a_measure_of_targets_is_the_metric_of_each_round(name, weights):
    """What hangs on targets and weights alone is computed once, and nothing else is remembered."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(30, 3)) * [1, 100, 0]  # the last one does not vary
    weight = {"none": None, "rows": rng.random(30), "cells": rng.random((30, 3))}.get(weights)
    if weights == "an unobserved target":
        weight = rng.random((30, 3)) * [1, 0, 1]
    (metric,) = make_metrics(name, default=name, kind="regression")
    measure = metric.measure(y, weight)
    values = set()
    for _ in range(3):
        prediction = y + rng.normal(size=y.shape)
        values.add(measure(prediction))
        assert measure(prediction) == metric.function(y, prediction, weight)
    assert len(values) == 3
    right = metric.measure(y, weight)(y)
    assert right == (1 if name == "r2" else 0)
