"""`random_state=None` is a fixed seed: two fits with the same data and parameters give the same bits."""

import numpy as np
import pytest
from sklearn.utils import check_random_state

import polyleaf
from mixed_table import mixed, table
from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor
from polyleaf.callbacks import Checkpoint
from polyleaf.params.table import AUTO_SKETCH_OUTPUTS
from training_cases import assert_same_model

SMALL = {"n_estimators": 4, "min_samples_leaf": 3, "max_depth": 3, "n_jobs": 1}
SAMPLED = SMALL | {"subsample": 0.6, "colsample_bytree": 0.7, "colsample_bynode": 0.7}


def classes(number):
    """Rows of so many classes."""
    rng = np.random.default_rng(3)
    y = np.arange(8 * number) % number
    X = rng.normal(size=(number, 5))[y] + 0.5 * rng.normal(size=(len(y), 5))
    return X, y


X, FEW = classes(7)
TARGETS = X[:, :3] + np.random.default_rng(4).normal(size=(len(X), 3))
ESTIMATORS = {
    "below the automatic sketch": (PolyleafClassifier, SMALL, classes(4)),
    "above the automatic sketch": (PolyleafClassifier, SMALL, classes(5)),
    "sketch of few classes": (PolyleafClassifier, SMALL | {"sketch": "random_projection"}, (X, FEW)),
    "sampled classes": (PolyleafClassifier, SAMPLED, (X, FEW)),
    "sampled by gradient": (PolyleafClassifier, SAMPLED | {"sampling_method": "gradient_based"}, (X, FEW)),
    "sampled targets": (PolyleafRegressor, SAMPLED, (X, TARGETS)),
    "sampled, many classes": (PolyleafClassifier, SAMPLED, classes(AUTO_SKETCH_OUTPUTS)),
}


@pytest.mark.parametrize("case", ESTIMATORS)
def test_none_is_a_fixed_seed(case):
    """It is that of 0, and NumPy's global generator neither counts nor advances."""
    estimator, params, (rows, y) = ESTIMATORS[case]
    shared = check_random_state(None)  # NumPy's global generator
    before = repr(shared.get_state())
    first = estimator(**params).fit(rows, y)
    assert repr(shared.get_state()) == before
    shared.random()
    assert_same_model(estimator(**params).fit(rows, y), first)
    assert_same_model(estimator(**params, random_state=0).fit(rows, y), first)
    drawn = estimator(**params, random_state=1).fit(rows, y)
    depends = "below" not in case
    assert depends != np.array_equal(drawn._forest.values, first._forest.values)


def test_mixed_targets():
    rows, y = table()
    settings = {"subsample": 0.5, "n_estimators": 4}
    first, again, zero, other = (
        mixed(**settings, random_state=seed).fit(rows, y)._forest.values for seed in (None, None, 0, 1)
    )
    np.testing.assert_array_equal(again, first)
    np.testing.assert_array_equal(zero, first)
    assert not np.array_equal(other, first)
    assert PolyleafMixed({"a": "regression"}).random_state is None


@pytest.mark.parametrize("case", ["above the automatic sketch", "sampled targets"])
def test_cross_validation(case):
    estimator, params, (rows, y) = ESTIMATORS[case]
    first, again = (polyleaf.cv(estimator(**params), rows, y, cv=2) for _ in range(2))
    for name, values in first.folds.items():
        np.testing.assert_array_equal(again.folds[name], values)


@pytest.mark.parametrize("case", ["above the automatic sketch", "sampled targets"])
def test_training_that_goes_on(case, tmp_path):
    """Each way to go on from half of the rounds gives the bits of one run, without a seed given."""
    estimator, params, (rows, y) = ESTIMATORS[case]
    whole = estimator(**params).fit(rows, y)
    half = params | {"n_estimators": 2}
    path = tmp_path / "run"
    begun = estimator(**half, callbacks=[Checkpoint(path)]).fit(rows, y)
    assert_same_model(estimator(**half).fit(rows, y, init_model=begun), whole)
    assert_same_model(estimator(**half).fit(rows, y, init_model=path), whole)
    assert_same_model(estimator(**params).fit(rows, y, resume=path), whole)
    begun.set_params(warm_start=True, n_estimators=4, callbacks=None).fit(rows, y)
    assert_same_model(begun, whole)


def test_an_instance_advances_with_each_fit():
    """As in scikit-learn: equal instances give equal models, and one instance another model each time."""
    made = PolyleafRegressor(**SAMPLED, random_state=np.random.RandomState(5))
    first, second = made.fit(X, TARGETS).predict(X), made.fit(X, TARGETS).predict(X)
    assert not np.array_equal(first, second)
    twin = PolyleafRegressor(**SAMPLED, random_state=np.random.RandomState(5))
    np.testing.assert_array_equal(twin.fit(X, TARGETS).predict(X), first)
    np.testing.assert_array_equal(twin.fit(X, TARGETS).predict(X), second)
