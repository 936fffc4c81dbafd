"""Errors show values as people write them, not as NumPy does."""

import numpy as np
import pytest

from polyleaf import PolyleafClassifier, PolyleafRegressor, cv

X = np.random.default_rng(0).normal(size=(60, 3))
Y = X[:, 0]
ODD = {
    "got 2.5 of": lambda: PolyleafRegressor(max_depth=np.float64(2.5)).fit(X, Y),
    "got -1": lambda: PolyleafRegressor(n_estimators=np.int64(-1)).fit(X, Y),
    "got 'foo'": lambda: PolyleafRegressor(objective=np.str_("foo")).fit(X, Y),
    "feature 9,": lambda: PolyleafRegressor(interaction_constraints=[[np.int64(9)]]).fit(X, Y),
    "is 4": lambda: PolyleafRegressor(monotone_constraints={0: np.int64(4)}).fit(X, Y),
    "only, 1 ": lambda: PolyleafClassifier().fit(X, np.ones(60, dtype=int)),
    "only, 'a' ": lambda: PolyleafClassifier().fit(X, np.array(["a"] * 60)),
    "got 2 in row": lambda: PolyleafClassifier().fit(X, np.where(X > 0, 1, 2)),
    "class 7,": lambda: PolyleafClassifier(class_weight={np.int64(7): 1.0}).fit(X, Y > 0),
    "folds; got 1": lambda: cv(PolyleafRegressor(), X, Y, cv=np.int64(1)),
    "holds 9,": lambda: PolyleafRegressor(categorical_features=np.array([9])).fit(X, Y),
}


@pytest.mark.parametrize("words", ODD)
def test_values_are_shown_plainly(words):
    with pytest.raises((TypeError, ValueError), match=words) as refused:
        ODD[words]()
    assert "np." not in str(refused.value)
