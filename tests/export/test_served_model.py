"""What exports read of a model is all there is to it: done by hand, it gives the bits of predict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mixed_table import TARGETS, table
from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor
from polyleaf.export.served_model import MOST_EXPONENT, OutputGroup, ServedModel, served_model

pytestmark = pytest.mark.cpu_only("an export does not depend on the device")

COMMON: dict[str, Any] = {"n_estimators": 8, "n_jobs": 1, "random_state": 0, "learning_rate": 0.3}
rng = np.random.default_rng(0)
X = np.round(rng.normal(size=(300, 4)), 1)
X[rng.random(X.shape) < 0.1] = np.nan
SCORE = np.nan_to_num(X[:, 0] - X[:, 1])
Y = np.stack([SCORE, SCORE**2, np.nan_to_num(X[:, 2])], axis=1)


def leaf_of(served: ServedModel, tree: int, row: np.ndarray) -> int:
    """The leaf of a row, as the docstring of the module has it."""
    forest, begin, at = served.forest, int(served.forest.node_begin[tree]), 0
    while forest.left[begin + at] >= 0:
        node = begin + at
        value, missing_left = row[forest.feature[node]], bool(forest.missing_left[node])
        if served.splits_by_category[node]:
            in_set = value in served.category_set(node)
            goes_left = in_set != missing_left
        else:
            goes_left = missing_left if np.isnan(value) else value <= forest.threshold[node]
        at = int(forest.left[node]) + (not goes_left)
    return at


def raw_scores(served: ServedModel, row: np.ndarray) -> np.ndarray:
    forest = served.forest
    score = served.base_in_units().copy()
    for tree in range(forest.n_trees):
        begin = int(forest.value_begin[forest.node_begin[tree] + leaf_of(served, tree, row)])
        for j in range(int(forest.tree_width[tree])):
            output = forest.value_output[begin + j] if served.has_sparse_leaves else j
            score[forest.tree_output[tree] + output] += np.float64(forest.values[begin + j])
    return np.asarray(score * forest.unit)


def codes_of(served: ServedModel, frame: pd.DataFrame) -> np.ndarray:
    """The numbers that trees ask, from a frame."""
    columns = []
    for j, name in enumerate(frame):
        if j in served.categories:
            place = {value: float(code) for code, value in enumerate(served.categories[j])}
            columns.append([place.get(value, np.nan) for value in frame[name]])
        else:
            columns.append(frame[name].to_list())
    return np.array(columns, dtype=np.float64).T


def predicted(group: OutputGroup, raw: np.ndarray) -> np.ndarray:
    """What the table of `OutputGroup` says that predict returns."""
    r = raw[:, group.first : group.first + group.n_outputs]
    if group.kind == "binary":
        return np.asarray(group.classes)[(r[:, 0] > 0).astype(int)]
    if group.kind == "multiclass":
        return np.asarray(group.classes)[r.argmax(axis=1)]
    if group.kind == "multilabel":
        return (r > group.label_threshold).astype(int)
    if group.link == "exponential":
        return np.asarray(np.exp(np.clip(r, -MOST_EXPONENT, MOST_EXPONENT)))
    return np.sort(r.reshape(len(r), -1, group.n_levels)).reshape(r.shape)


def probabilities(group: OutputGroup, raw: np.ndarray) -> np.ndarray:
    r = raw[:, group.first : group.first + group.n_outputs]
    if group.link == "softmax":
        e = np.exp(r - r.max(axis=1, keepdims=True))
        return np.asarray(e / e.sum(axis=1, keepdims=True))
    if group.link == "identity":
        return r.clip(0, 1)
    p = 1 / (1 + np.exp(-r))
    return np.hstack([1 - p, p]) if group.kind == "binary" else p


MODELS: dict[str, Callable[[], Any]] = {
    "one number": lambda: PolyleafRegressor(**COMMON).fit(X, SCORE),
    "numbers": lambda: PolyleafRegressor(**COMMON).fit(X, Y),
    "units": lambda: PolyleafRegressor(**COMMON).fit(X, Y * [1e100, 1, 1e-100]),
    "a tree for each": lambda: PolyleafRegressor(multi_strategy="one_output_per_tree", **COMMON).fit(X, Y),
    "sparse": lambda: PolyleafRegressor(sparse_leaves=2, **COMMON).fit(X, Y),
    "quantiles": lambda: PolyleafRegressor(
        objective="quantile", quantile_levels=[0.2, 0.5, 0.9], **COMMON
    ).fit(X, Y),
    "counts": lambda: PolyleafRegressor(objective="poisson", **COMMON).fit(X, np.abs(Y)),
    "bags": lambda: PolyleafRegressor(n_bags=2, **COMMON).fit(X, Y),
    "two": lambda: PolyleafClassifier(**COMMON).fit(X, SCORE > 0),
    "classes": lambda: PolyleafClassifier(**COMMON).fit(X, np.array(["a", "b", "c"])[Y.argmax(axis=1)]),
    "labels": lambda: PolyleafClassifier(**COMMON).fit(X, (Y > 0).astype(int)),
    "clipped": lambda: PolyleafClassifier(objective="clipped_squared_error", **COMMON).fit(
        X, (Y > 0).astype(int)
    ),
    "stopped": lambda: PolyleafRegressor(
        **COMMON | {"n_estimators": 300}, early_stopping_rounds=2, refit=False
    ).fit(X, Y),
    "cut": lambda: PolyleafRegressor(**COMMON).fit(X, Y)[:3],
    "nothing": lambda: PolyleafRegressor(**COMMON).fit(X, Y)[:0],
}


@pytest.mark.parametrize("kind", MODELS)
def test_by_hand(kind: str) -> None:
    model = MODELS[kind]()
    served = served_model(model)
    rows = X[:60]
    assert served.forest.n_trees == model.apply(rows).shape[1]
    leaves = [[leaf_of(served, tree, row) for tree in range(served.forest.n_trees)] for row in rows]
    np.testing.assert_array_equal(np.array(leaves).reshape(60, -1), model.apply(rows))
    raw = np.array([raw_scores(served, row) for row in rows])
    np.testing.assert_array_equal(raw, model._raw(rows, None))
    (group,) = served.groups
    found = predicted(group, raw)
    ours = model.predict(rows)
    assert served.is_vector == (ours.ndim == 1)
    assert len(group.columns) == (1 if ours.ndim == 1 else ours.shape[1])
    if ours.dtype.kind == "f":
        np.testing.assert_allclose(found.reshape(ours.shape), ours, rtol=1e-14)
    else:
        np.testing.assert_array_equal(found, ours)
    if group.kind != "regression":
        np.testing.assert_allclose(probabilities(group, raw), model.predict_proba(rows), rtol=1e-12)
        assert len(group.probability_columns) == model.predict_proba(rows).shape[1]


def test_categories_by_hand() -> None:
    frame = pd.DataFrame({"t": rng.choice(["a", "b", "c", "d"], 400), "k": rng.choice([3, 70, -1], 400)})
    frame["x"] = rng.normal(size=400)
    y = frame["t"].map({"a": 1, "c": 1}).fillna(0) + (frame["k"] == 70) + frame["x"]
    model = PolyleafRegressor(categorical_features=["t", "k"], **COMMON).fit(frame, y)
    rows = pd.DataFrame({"t": ["a", "z", None, "d"], "k": [3, 4, 70, -1], "x": [0.0, np.nan, 1.0, -1.0]})
    served = served_model(model)
    assert served.categories == {0: ("a", "b", "c", "d"), 1: (-1, 3, 70)}
    assert served.splits_by_category.any()
    raw = [raw_scores(served, row) for row in codes_of(served, rows)]
    np.testing.assert_array_equal(raw, model._raw(rows, None))


def test_mixed_by_hand() -> None:
    X, y = table()
    model = PolyleafMixed(TARGETS, **COMMON).fit(X, y)
    served = served_model(model)
    ours, shares = model.predict(X[:50]), model.predict_proba(X[:50])
    assert list(served.columns) == list(ours)
    raw = model._raw(X[:50], None)
    np.testing.assert_array_equal(raw[:, served.raw_places()], model._coding.in_order_of_y(raw))
    assert sum(group.n_outputs for group in served.groups) == raw.shape[1]
    for group in served.groups:
        found = predicted(group, raw).reshape(50, -1)
        for j, name in enumerate(group.columns):
            np.testing.assert_array_equal(found[:, j], ours[name])
        if group.kind != "regression":
            np.testing.assert_allclose(probabilities(group, raw), shares[group.name], rtol=1e-12)


def test_a_forged_model_with_two_ways_to_a_node() -> None:
    """Its predictions are safe, but other forms of it could be endless."""
    model = PolyleafRegressor(**COMMON).fit(X, Y)
    left = model._forest.left
    assert left[0] == 1
    left[1] = left[2]
    assert np.isfinite(model.predict(X)).all()
    with pytest.raises(ValueError, match=r"tree 0 of the model is none: \d ways lead to its node"):
        served_model(model)
