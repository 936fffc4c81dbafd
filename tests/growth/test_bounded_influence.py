"""No row moves its leaf by more than ordinary rows could; these, and rows that agree, are left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from growing import settings, task
from oracle import (
    ERRORS_OF_MEAN,
    ORDINARY_MAGNITUDES,
    Problem,
    Rules,
    bound_influence,
    grow_tree,
    influence_limit,
)
from polyleaf import PolyleafMixed, PolyleafRegressor
from polyleaf.data.binning import bin_table
from polyleaf.growth.dense import DenseGrower
from polyleaf.growth.tree import Tree
from polyleaf.params.combinations import Refused

SMALL = {"n_estimators": 20, "learning_rate": 0.1, "min_samples_leaf": 3, "n_jobs": 1}


def truth(X: Any, d: int) -> Any:
    """What there is to learn."""
    return np.sin(2 * X[:, :1]) + X[:, 1:2] * np.arange(1, d + 1)


def table(n: int, d: int, seed: int = 0) -> tuple[Any, Any]:
    """A table, and targets of which one is wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = truth(X, d) + 0.1 * rng.normal(size=(n, d))
    y[n // 2, 0] += 100.0
    return X, y


# --- the rule ----------------------------------------------------------------------------------------------


def grown(X: Any, gradient: Any, weight: Any = None, **rules: Any) -> Tree:
    of_grower = settings(**{"max_depth": 3, "min_samples_leaf": 3, "bounded_influence": True} | rules)
    return DenseGrower(bin_table(X, weight, 255, 1), of_grower).grow(task(gradient, weight=weight))


@pytest.mark.cpu_only("it is the core that the oracle is compared with")
@pytest.mark.parametrize("rules", [{}, {"reg_alpha": 0.3}, {"sparse_leaves": 2}, {"reg_lambda": 0.0}])
@pytest.mark.parametrize("weights", ["none", "whole", "any"])
def test_the_core_fills_the_oracles_leaves(rules: dict[str, Any], weights: str) -> None:
    rng, n_bounded = np.random.default_rng(7), 0
    for _ in range(10):
        codes = rng.integers(0, 8, size=(90, 3))
        gradient = rng.standard_t(1.2, size=(90, 3)).astype(np.float32)
        weight = {"none": None, "whole": rng.integers(1, 4, 90) * 1.0, "any": rng.uniform(0.1, 3, 90)}[
            weights
        ]
        of_oracle = Rules(max_depth=3, min_samples_leaf=3, **rules)
        bins = np.full(3, 8)
        problem = Problem(codes, bins, np.zeros(3, bool), gradient.astype(float), None, weight, of_oracle)
        plain = grow_tree(problem)
        expected = bound_influence(
            plain, gradient.astype(float), np.ones(90) if weight is None else weight, of_oracle
        )
        tree = grown(codes.astype(float), gradient, weight, **rules)
        leaves = expected.feature < 0
        assert tree.feature.tolist() == expected.feature.tolist()
        values = np.zeros((leaves.sum(), 3))
        if len(tree.outputs) > 0:
            np.put_along_axis(values, tree.outputs, tree.values, axis=1)
        else:
            values[:] = tree.values
        np.testing.assert_allclose(values, expected.value[leaves], rtol=1e-5, atol=1e-6)
        n_bounded += int((plain.value != expected.value).any())
    assert n_bounded > 5


def one_leaf(
    gradient: Any, bounded: bool = True, weight: Any = None, rest: int = 1000, scale: float = 1.0
) -> float:
    """What a leaf of these rows says, beside another with rows of magnitude 1 that say nothing together."""
    others = np.resize([1.0, -1.0], rest)
    X = np.repeat([0.0, 1.0], [len(gradient), rest])[:, None]
    weights = None if weight is None else np.append(weight, np.full(rest, scale))
    both = np.append(gradient, others).astype(np.float32)[:, None]
    rules = {"max_depth": 1, "reg_lambda": 0.0, "bounded_influence": bounded}
    return float(grown(X, both, weights, **rules).values[0, 0])


@pytest.mark.cpu_only("the growers of the CPU")
def test_rows_up_to_the_limit_are_left_alone() -> None:
    """Both sides of six mean magnitudes."""
    limit = ORDINARY_MAGNITUDES * 1.0
    below, above = [0.99 * limit, 0.1, -0.1], [1.1 * limit, 0.1, -0.1]
    assert one_leaf(below) == one_leaf(below, bounded=False)
    assert abs(one_leaf(above)) < abs(one_leaf(above, bounded=False))
    # What is said of the row is the limit, and its share of what was cut off.
    assert one_leaf([1e6, 0.1, -0.1], rest=10**6) == pytest.approx(-(limit / 3 * 2 + 1 / 3), rel=0.5)


@pytest.mark.cpu_only("the growers of the CPU")
def test_rows_that_others_agree_with_are_left_alone() -> None:
    agreed = [50.0, 50.0, 50.0]
    assert one_leaf(agreed) == one_leaf(agreed, bounded=False)


@pytest.mark.cpu_only("the growers of the CPU")
def test_a_large_leaf_may_hold_a_large_row() -> None:
    """Both sides of two errors of its mean."""
    ordinary = np.resize([3.0, -3.0], 400)
    limit = ERRORS_OF_MEAN * np.sqrt(401) * 3.0
    for size, same in ((0.98 * limit, True), (1.05 * limit, False)):
        leaf = np.append(size, ordinary)
        assert (one_leaf(leaf) == one_leaf(leaf, bounded=False)) == same


@pytest.mark.cpu_only("the growers of the CPU")
def test_weight_two_is_the_row_twice() -> None:
    twice = one_leaf([500.0, 500.0, 1.0, -1.0])
    assert one_leaf([500.0, 1.0, -1.0], weight=[2.0, 1.0, 1.0]) == twice
    assert influence_limit(np.array([500.0, 1.0]), np.array([2.0, 1.0]), 1.0, 1.0) == influence_limit(
        np.array([500.0, 500.0, 1.0]), np.ones(3), 1.0, 1.0
    )


@pytest.mark.cpu_only("the growers of the CPU")
def test_only_the_ratios_of_weights_matter() -> None:
    """Also where all are far below 1."""
    leaf, weight = [500.0, 1.0, -1.0], np.array([1.0, 2.0, 1.0])
    expected = one_leaf(leaf, weight=weight)
    assert abs(expected) < abs(one_leaf(leaf, weight=weight, bounded=False))
    assert one_leaf(leaf, weight=weight * 2.0**-30, scale=2.0**-30) == expected


# --- estimators --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 4])
def test_a_wrong_target_does_not_take_its_neighbours_along(d: int) -> None:
    """Rows beside it that training has not seen."""
    X, y = table(800, d)
    near = X[400] + 0.02 * np.random.default_rng(3).normal(size=(50, 4))
    error = {}
    for bounded in (True, False):
        model = PolyleafRegressor(**SMALL | {"n_estimators": 200}, bounded_influence=bounded).fit(X, y)
        error[bounded] = np.abs(model.predict(near).reshape(-1, d) - truth(near, d))[:, 0].mean()
    assert error[False] > 20
    assert error[True] < 0.2 * error[False]


def test_ordinary_residuals_are_none_of_its_business() -> None:
    """Of normal residuals none is beyond six mean magnitudes: not a bit changes."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 4))
    y = rng.normal(size=(500, 3))
    with_it, without = (
        PolyleafRegressor(**SMALL | {"min_samples_leaf": 20}, bounded_influence=bounded).fit(X, y).predict(X)
        for bounded in (True, False)
    )
    np.testing.assert_array_equal(with_it, without)


def test_predictions_keep_the_mean_of_skewed_targets() -> None:
    """What is cut off is not lost: it is said to all rows."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2000, 3))
    y = np.exp(2 * rng.normal(size=2000))
    model = PolyleafRegressor(**SMALL, reg_lambda=0.0, bounded_influence=True).fit(X, y)
    plain = PolyleafRegressor(**SMALL, reg_lambda=0.0, bounded_influence=False).fit(X, y)
    assert not np.array_equal(model.predict(X), plain.predict(X))
    assert model.predict(X).mean() == pytest.approx(y.mean(), rel=1e-5)


@pytest.mark.parametrize("params", [{}, {"multi_strategy": "one_output_per_tree"}, {"sketch": None}])
def test_neither_order_nor_threads_nor_duplicates_change_a_bit(params: dict[str, Any]) -> None:
    X, y = table(400, 3)
    # With weight 2 a row is still one row in a leaf.
    fixed = {**SMALL, "min_samples_leaf": 1, "colsample_bytree": 1.0, **params}
    expected = PolyleafRegressor(**fixed).fit(X, y).predict(X)
    order = np.random.default_rng(0).permutation(400)
    np.testing.assert_array_equal(PolyleafRegressor(**fixed).fit(X[order], y[order]).predict(X), expected)
    np.testing.assert_array_equal(PolyleafRegressor(**fixed | {"n_jobs": 4}).fit(X, y).predict(X), expected)
    count = np.where(np.arange(400) == 200, 2, 1)
    twice = PolyleafRegressor(**fixed).fit(np.repeat(X, count, axis=0), np.repeat(y, count, axis=0))
    weighted = PolyleafRegressor(**fixed).fit(X, y, sample_weight=count.astype(float))
    np.testing.assert_allclose(weighted.predict(X), twice.predict(X), rtol=1e-6)
    assert not np.array_equal(twice.predict(X), expected)


def test_units_of_targets_do_not_matter() -> None:
    X, y = table(300, 2)
    model = PolyleafRegressor(**SMALL).fit(X, y)
    np.testing.assert_allclose(
        PolyleafRegressor(**SMALL).fit(X, y * 2.0**40).predict(X), model.predict(X) * 2.0**40, rtol=1e-6
    )


def test_auto_is_for_the_squared_error_of_targets_that_are_all_there() -> None:
    X, y = table(100, 2)
    gaps = y.copy()
    gaps[3, 0] = np.nan
    for objective, targets, expected in (
        (None, y, True),
        ("squared_error", y, True),
        ("huber", y, False),
        (None, gaps, False),
    ):
        model = PolyleafRegressor(**SMALL, objective=objective).fit(X, targets)
        assert model.chosen_params_["bounded_influence"] is expected
    off = PolyleafRegressor(**SMALL, bounded_influence=False).fit(X, y)
    assert "bounded_influence" not in off.chosen_params_
    mixed = PolyleafMixed({"a": "regression"}, **SMALL).fit(X, {"a": y[:, 0]})
    assert mixed.chosen_params_["bounded_influence"] is True
    alone = PolyleafRegressor(**SMALL).fit(X, y[:, 0])
    np.testing.assert_array_equal(mixed.predict(X)["a"], alone.predict(X))


def test_where_it_has_no_meaning_it_is_refused_by_name() -> None:
    X, y = table(60, 2)
    asked = {**SMALL, "bounded_influence": True}
    with pytest.raises(Refused, match="bounded_influence=True does not go with objective='huber'"):
        PolyleafRegressor(**asked, objective="huber").fit(X, y)
    for given in ({"y": np.where(y > 1, np.nan, y)}, {"y": y, "sample_weight": np.abs(y) + 0.1}):
        with pytest.raises(Refused, match="missing targets or weights of cells"):
            PolyleafRegressor(**asked).fit(X, **given)
    with pytest.raises(Refused, match="several groups of targets"):
        PolyleafMixed({"a": "regression", "b": "huber"}, **asked).fit(X, {"a": y[:, 0], "b": y[:, 1]})
