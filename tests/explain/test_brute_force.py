"""Shapley values are those of their definition: a sum over all subsets of the features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from math import factorial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from polyleaf import PolyleafClassifier, PolyleafRegressor
from polyleaf.explain.shap import ForestShap
from polyleaf.model.forest import Forest

Values = npt.NDArray[np.float64]
N_FEATURES = 6


def in_set(forest: Forest, node: int, value: float) -> bool:
    words = forest.category_bits[forest.category_begin[node] : forest.category_begin[node + 1]]
    return bool(
        value >= 0 and value < 32 * len(words) and (int(words[int(value) // 32]) >> int(value) % 32) & 1
    )


def goes_right(forest: Forest, node: int, value: float) -> bool:
    missing_left = bool(forest.missing_left[node])
    if forest.category_begin[node + 1] > forest.category_begin[node]:
        return in_set(forest, node, value) == missing_left
    return not missing_left if np.isnan(value) else value > forest.threshold[node]


def leaf_vector(forest: Forest, tree: int, node: int) -> Values:
    begin, width = forest.value_begin[node], forest.tree_width[tree]
    vector = np.zeros(forest.n_outputs)
    first = forest.tree_output[tree]
    outputs = (
        forest.value_output[begin : begin + width] if len(forest.value_output) else first + np.arange(width)
    )
    np.add.at(vector, outputs, forest.values[begin : begin + width].astype(np.float64))
    return vector * forest.unit


def known_part(forest: Forest, tree: int, row: Values, known: frozenset[int]) -> Values:
    """What a tree predicts where only these features are known."""
    root = int(forest.node_begin[tree])

    def below(node: int) -> Values:
        if forest.left[node] < 0:
            return leaf_vector(forest, tree, node)
        left = root + int(forest.left[node])
        feature = int(forest.feature[node])
        if feature in known:
            return below(left + int(goes_right(forest, node, row[feature])))
        covers = forest.cover[left], forest.cover[left + 1]
        share = covers[0] / sum(covers) if sum(covers) > 0 else 0.5
        return share * below(left) + (1 - share) * below(left + 1)

    return below(root)


def by_definition(forest: Forest, tree: int, row: Values) -> Values:
    """Shapley values of a tree, (features, outputs)."""
    n = forest.n_features
    subsets = [frozenset(one) for size in range(n + 1) for one in combinations(range(n), size)]
    value = {known: known_part(forest, tree, row, known) for known in subsets}
    found = np.zeros((n, forest.n_outputs))
    for known in subsets:
        weight = factorial(len(known)) * factorial(n - len(known) - 1) / factorial(n) if len(known) < n else 0
        for feature in set(range(n)) - known:
            found[feature] += weight * (value[known | {feature}] - value[known])
    return found


def pairs_by_definition(forest: Forest, tree: int, row: Values) -> Values:
    """Interaction values of a tree, (features, features, outputs)."""
    n = forest.n_features
    subsets = [frozenset(one) for size in range(n + 1) for one in combinations(range(n), size)]
    value = {known: known_part(forest, tree, row, known) for known in subsets}
    found = np.zeros((n, n, forest.n_outputs))
    for known in subsets:
        for i, j in combinations(sorted(set(range(n)) - known), 2):
            weight = factorial(len(known)) * factorial(n - len(known) - 2) / (2 * factorial(n - 1))
            both = value[known | {i, j}] - value[known | {i}] - value[known | {j}] + value[known]
            found[i, j] += weight * both
            found[j, i] += weight * both
    found[np.diag_indices(n)] = by_definition(forest, tree, row) - found.sum(axis=1)
    return found


def table(n: int = 400, seed: int = 0) -> tuple[Values, Values]:
    """Numbers, some of them missing, a column of categories, and three targets with interactions."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, N_FEATURES))
    X[:, 4] = rng.integers(0, 40, size=n)
    X[rng.random(X.shape) < 0.1] = np.nan
    Z = np.nan_to_num(X, nan=0.7)
    Y = np.column_stack(
        [Z[:, 0] * Z[:, 1], np.sin(Z[:, 2]) + (Z[:, 4] % 3 == 0), Z[:, 3] * Z[:, 0] + Z[:, 5]]
    )
    return X, Y + 0.1 * rng.normal(size=Y.shape)


def models() -> Iterator[Any]:
    X, Y = table()
    small = {"n_estimators": 2, "max_depth": 6, "min_samples_leaf": 3, "random_state": 0}
    options: dict[str, dict[str, Any]] = {
        "joint": {},
        "categories": {"categorical_features": [4]},
        "one output per tree": {"multi_strategy": "one_output_per_tree"},
        "sparse leaves": {"sparse_leaves": 2},
        "a sample": {"subsample": 0.5},
        "many leaves": {"max_leaves": 150, "max_depth": None, "min_samples_leaf": 1},
    }
    for name, own in options.items():
        yield pytest.param(lambda own=own: PolyleafRegressor(**{**small, **own}).fit(X, Y), id=name)
    weight = np.random.default_rng(1).exponential(size=len(X))
    yield pytest.param(lambda: PolyleafRegressor(**small).fit(X, Y, weight), id="weights")
    yield pytest.param(lambda: PolyleafRegressor(**small).fit(X, Y * 1e200), id="units")
    classes = np.digitize(Y[:, 0], [-0.5, 0, 0.5])
    yield pytest.param(lambda: PolyleafClassifier(**small).fit(X, classes), id="classes")
    yield pytest.param(lambda: PolyleafClassifier(**small).fit(X, classes > 1), id="two classes")


@pytest.mark.parametrize("make", list(models()))
def test_values_are_those_of_the_definition(make: Any) -> None:
    model = make()
    X, _ = table()
    rows = X[[0, 7, 11]]
    forest = model._forest
    found = model.shap_values(rows).reshape(len(rows), N_FEATURES, -1)
    for row, values in zip(rows, found, strict=True):
        expected = sum(by_definition(forest, tree, row) for tree in range(forest.n_trees))
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("make", list(models()))
def test_interactions_are_those_of_the_definition(make: Any) -> None:
    model = make()
    X, _ = table()
    forest = model._forest
    found = model.shap_values(X[:2], interactions=True).reshape(2, N_FEATURES, N_FEATURES, -1)
    for row, values in zip(X, found, strict=False):
        expected = sum(pairs_by_definition(forest, tree, row) for tree in range(forest.n_trees))
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


def test_a_deep_way_by_many_features() -> None:
    """More points of integration than there are loops written out for."""
    n = 12
    rng = np.random.default_rng(0)
    X = (rng.random((3000, n)) < 0.8).astype(np.float64)
    y = np.minimum.accumulate(X, axis=1).sum(axis=1)  # how many ones come first
    model = PolyleafRegressor(
        n_estimators=1, max_depth=n, min_samples_leaf=1, learning_rate=1.0, colsample_bytree=1.0
    ).fit(X, y)
    forest = model._forest
    assert len(np.unique(forest.feature[forest.left >= 0])) > 10  # in a row: the tree is a chain
    assert (forest.left >= 0).sum() < n
    for row in (X[0], np.ones(n)):
        expected = by_definition(forest, 0, row)[:, 0]
        np.testing.assert_allclose(model.shap_values(row[np.newaxis])[0], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("uncovered", ["one child", "both children", "everything"])
def test_children_without_cover_give_numbers(uncovered: str) -> None:
    X, Y = table()
    forest = PolyleafRegressor(n_estimators=1, max_depth=4).fit(X, Y)._forest
    cover = forest.cover.copy()
    left = int(forest.left[forest.left[0]])
    cover[{"one child": [left], "both children": [left, left + 1], "everything": slice(None)}[uncovered]] = 0
    # No count either: then each child has a half.
    changed = replace(forest, cover=cover, count=np.where(cover > 0, forest.count, 0))
    shap = ForestShap(changed, 1, np.arange(3))
    found = shap.values(X[:5], np.dtype(np.float64), 1)
    for row, values in zip(X, found, strict=False):
        np.testing.assert_allclose(values, by_definition(changed, 0, row), rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.sum(axis=1) + shap.expected, changed.predict_raw(X[:5]), atol=1e-10)
