"""`histogram_precision`: sums of 20 bits only where they are asked for and possible."""

import functools

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import log_loss

import polyleaf
from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor
from polyleaf.callbacks import Checkpoint
from same_forest import assert_same_bits
from training_cases import assert_same_model

SMALL = {
    "n_estimators": 3,
    "max_depth": 4,
    "min_samples_leaf": 5,
    "max_bins": 32,
    "sketch": None,
    "n_jobs": 1,
}
N = 2000


def numbers(outputs, n=N):
    rng = np.random.default_rng(outputs)
    X = rng.normal(size=(n, 4))
    return X, np.tanh(X) @ rng.normal(size=(4, outputs)) + 0.3 * rng.normal(size=(n, outputs))


def classes(outputs, n=N):
    X, scores = numbers(outputs, n)
    return X, scores.argmax(axis=1)


def labels(outputs):
    X, scores = numbers(outputs)
    return X, (scores > 0.5).astype(int)


def counts(outputs):
    X, scores = numbers(outputs)
    return X, np.random.default_rng(0).poisson(np.exp(scores))


def both(estimator, X, y, weight=None, **params):
    for precision in ("full", "packed"):
        yield estimator(**(SMALL | params), histogram_precision=precision).fit(X, y, weight)


def same_sums(one, other):
    """Whether the gains are the same to the last bit: of few rows, both precisions find the same splits."""
    return np.array_equal(one._forest.gain, other._forest.gain)


PACKED = {
    "10 classes": (PolyleafClassifier, classes(10), {}),
    "20 classes": (PolyleafClassifier, classes(20), {}),
    "40 classes, shared": (PolyleafClassifier, classes(40), {}),
    "17 classes, shared": (PolyleafClassifier, classes(17), {"hessian": "shared"}),
    "8 labels": (PolyleafClassifier, labels(8), {}),
    "20 targets": (PolyleafRegressor, numbers(20), {}),
    "50 targets": (PolyleafRegressor, numbers(50), {}),
    "8 counts": (PolyleafRegressor, counts(8), {"objective": "poisson"}),
    "sample of rows": (PolyleafClassifier, classes(10), {"subsample": 0.5}),
    "sparse leaves": (PolyleafRegressor, numbers(20), {"sparse_leaves": 3}),
    "leaves of a full Hessian": (PolyleafClassifier, classes(10), {"hessian": "exact_leaf"}),
    "a wide sketch": (PolyleafRegressor, numbers(40), {"sketch": "random_projection", "sketch_size": 17}),
}


@pytest.mark.parametrize("case", PACKED)
def test_sums_are_packed(case):
    """It does something where docs/how-it-works.md says so; the default is "full"."""
    estimator, (X, y), params = PACKED[case]
    full, packed = both(estimator, X, y, **params)
    assert not same_sums(full, packed)
    assert_same_bits(estimator(**(SMALL | params)).fit(X, y), full)


RNG = np.random.default_rng(0)
FULL = {
    "7 classes": (PolyleafClassifier, *classes(7), None, {}),
    "14 classes": (PolyleafClassifier, *classes(14), None, {}),
    "25 targets": (PolyleafRegressor, *numbers(25), None, {}),
    "weights": (PolyleafClassifier, *classes(10), RNG.uniform(1, 2, N), {}),
    "class weights": (PolyleafClassifier, *classes(10), None, {"class_weight": "balanced"}),
    "missing targets": (
        PolyleafRegressor,
        numbers(20)[0],
        np.where(RNG.random((N, 20)) < 0.1, np.nan, numbers(20)[1]),
        None,
        {},
    ),
    "sampled by gradient": (
        PolyleafClassifier,
        *classes(10),
        None,
        {"subsample": 0.5, "sampling_method": "gradient_based"},
    ),
    "one output a tree": (PolyleafClassifier, *classes(10), None, {"multi_strategy": "one_output_per_tree"}),
    "full Hessian": (PolyleafClassifier, *classes(10), None, {"hessian": "exact"}),
    "small sketch": (PolyleafClassifier, *classes(10), None, {"sketch": "random_projection"}),
    "sparse labels": (
        PolyleafClassifier,
        labels(10)[0],
        scipy.sparse.csr_array(labels(10)[1]),
        None,
        {"objective": "clipped_squared_error", "sparse_leaves": 3},
    ),
}


@pytest.mark.parametrize("case", FULL)
def test_full_sums_where_packed_ones_are_not_possible(case):
    estimator, X, y, weight, params = FULL[case]
    full, packed = both(estimator, X, y, weight, **params)
    assert_same_bits(full, packed)


@pytest.mark.parametrize("n_rows", [262_144, 262_145])
def test_the_largest_number_of_rows(n_rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 1)).astype(np.float32)
    y = (5 * X[:, 0] + rng.normal(size=n_rows)).astype(int) % 10
    full, packed = both(PolyleafClassifier, X, y, n_estimators=1, max_depth=3)
    assert same_sums(full, packed) == (n_rows > 262_144)


def test_leaf_values_come_from_the_numbers_as_they_are():
    """Where both find the same splits, they have the same leaves."""
    X = np.repeat([[0.0], [1.0]], 500, axis=0)
    y = np.hstack([X + 0.1 * np.random.default_rng(j).normal(size=(1000, 1)) for j in range(20)])
    full, packed = both(PolyleafRegressor, X, y, max_depth=1)
    np.testing.assert_array_equal(full._forest.values, packed._forest.values)
    np.testing.assert_array_equal(full.predict(X), packed.predict(X))


def test_packed_sums_learn_as_much():
    X, y = classes(10, 9000)
    full, packed = (
        log_loss(y, model.predict_proba(X)) for model in both(PolyleafClassifier, X, y, n_estimators=30)
    )
    assert packed == pytest.approx(full, rel=0.02)
    assert packed != full


def test_mixed_targets_and_cross_validation():
    X, scores = numbers(9)
    y = {f"y{j}": scores[:, j] for j in range(8)} | {"kind": scores.argmax(axis=1)}
    targets = {name: "multiclass" if name == "kind" else "regression" for name in y}
    full, packed = both(functools.partial(PolyleafMixed, targets), X, y)
    assert not same_sums(full, packed)
    X, y = classes(10)
    one, two = (
        polyleaf.cv(
            PolyleafClassifier(**SMALL, histogram_precision=precision), X, y, cv=2, return_models=True
        )
        for precision in ("full", "packed")
    )
    assert not any(map(same_sums, one.models, two.models))


@pytest.mark.cpu_only("a loaded model goes on on the CPU")
def test_it_is_a_parameter_of_the_file_and_of_runs_that_go_on(tmp_path):
    X, y = classes(10)
    path = tmp_path / "run"
    whole = PolyleafClassifier(**SMALL, histogram_precision="packed").fit(X, y)
    short = SMALL | {"n_estimators": 2}
    PolyleafClassifier(**short, histogram_precision="packed", callbacks=[Checkpoint(path)]).fit(X, y)
    loaded = polyleaf.load_model(path)
    assert loaded.histogram_precision == "packed"
    assert_same_model(PolyleafClassifier(**SMALL, histogram_precision="packed").fit(X, y, resume=path), whole)
    with pytest.raises(ValueError, match="histogram_precision was 'packed', and is 'full' now"):
        PolyleafClassifier(**SMALL).fit(X, y, resume=path)
    loaded.set_params(warm_start=True, n_estimators=3).fit(X, y)
    assert_same_model(loaded, whole)
