"""Monotone and interaction constraints: the oracle's trees, and what they promise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from test_growth_oracle import assert_same_tree, grow

from oracle import (
    Problem,
    exact_split_gains,
    grow_tree,
    histogram,
    score_of_values,
    sibling_values,
    signs_of_splits,
    split_gains,
    sums,
)
from polyleaf import PolyleafClassifier, PolyleafRegressor, load_model
from problems import is_clear_cut, random_problem

# ---- The oracle -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def problems() -> list[Problem]:
    return [random_problem(seed, kind="constrained") for seed in range(150)]


def test_random_problems_cover_what_they_promise(problems: list[Problem]) -> None:
    trees = [grow_tree(problem) for problem in problems]
    monotone = [problem.rules.monotone for problem in problems]
    assert sum(signs is not None for signs in monotone) > 60
    assert sum(problem.rules.groups is not None for problem in problems) > 40
    assert any(problem.rules.groups == () for problem in problems)
    changed = [
        (tree.feature.tolist(), tree.bin.tolist(), tree.value.tolist())
        != (free.feature.tolist(), free.bin.tolist(), free.value.tolist())
        for problem, tree in zip(problems, trees, strict=True)
        for free in [grow_tree(replace(problem, rules=replace(problem.rules, monotone=None, groups=None)))]
    ]
    assert sum(changed) > 50
    # Values are pushed to a limit, and pooled over siblings.
    at_limit = [
        any(
            np.any((v == limits.low) | (v == limits.high))
            for v, limits in zip(tree.value, tree.limits, strict=True)
        )
        for tree in trees
    ]
    assert sum(at_limit) > 30


def test_histogram_and_exact_split_finding_agree(problems: list[Problem]) -> None:
    for problem in problems:
        tree = grow_tree(problem)
        for node in {0, len(tree.rows) // 2, len(tree.rows) - 1}:
            rows, held, limits = tree.rows[node], tree.outputs[node], tree.limits[node]
            for k in range(problem.codes.shape[1]):
                hist, signs = histogram(problem, rows, k), signs_of_splits(problem, k)
                from_histogram = split_gains(hist, problem.rules, held, limits, signs)
                np.testing.assert_array_equal(
                    from_histogram, exact_split_gains(problem, rows, k, held, limits)
                )


def test_gains_add_up_to_the_fall_of_the_objective(problems: list[Problem]) -> None:
    """Row by row with the values that the leaves predict: what the splits were scored by."""
    compared = 0
    for problem in problems:
        if problem.rules.reg_lambda == 0:  # an output without curvature has no say in the gains
            continue
        problem = replace(problem, rules=replace(problem.rules, gain_weight=None))
        rules, tree = problem.rules, grow_tree(problem)

        def objective(leaf: Any, problem: Problem = problem, value: Any = tree.value) -> float:
            w, once = value[leaf], value[np.unique(leaf)]
            penalty = 0.5 * problem.rules.reg_lambda * once**2 + problem.rules.reg_alpha * np.abs(once)
            return float(np.sum(problem.g * w + 0.5 * problem.h * w**2) + np.sum(penalty))

        fall = objective(np.zeros_like(tree.leaf)) - objective(tree.leaf)
        np.testing.assert_allclose(tree.gain.sum(), fall, rtol=1e-9, atol=1e-9)
        compared += rules.monotone is not None and len(tree.feature) > 1
    assert compared > 30


def test_no_other_values_in_order_are_better(problems: list[Problem]) -> None:
    """The values of two sibling leaves minimise the objective under the constraints."""
    rng = np.random.default_rng(0)
    for problem in problems[:60]:
        rules, tree = problem.rules, grow_tree(problem)
        for node in np.flatnonzero(tree.feature >= 0):
            left, right = (sums(problem, tree.rows[child]) for child in (tree.left[node], tree.right[node]))
            limits, sign = tree.limits[node], signs_of_splits(problem, tree.feature[node])[tree.bin[node]]
            if (np.minimum(left.H, right.H) + rules.reg_lambda <= 0).any():
                continue
            best = sibling_values(left, right, rules, limits, sign)
            assert (sign * best[0] <= sign * best[1]).all()
            reached = score_of_values(left, rules, best[0]) + score_of_values(right, rules, best[1])
            for _ in range(5):
                a = limits.clip(best[0] + rng.normal(size=len(sign)) * rng.choice([1e-3, 1.0]))
                b = limits.clip(best[1] + rng.normal(size=len(sign)) * rng.choice([1e-3, 1.0]))
                a, b = np.where(sign * a > sign * b, b, a), b
                other = score_of_values(left, rules, a) + score_of_values(right, rules, b)
                assert other <= reached + 1e-9 * (1 + abs(reached))


# ---- The core against the oracle ------------------------------------------------------------------------


@pytest.mark.parametrize("block", range(12))
def test_core_grows_the_oracles_tree(block: int) -> None:
    for seed in range(40 * block, 40 * (block + 1)):
        problem = random_problem(seed, kind="constrained")
        assert_same_tree(problem, grow(problem))


@pytest.mark.parametrize("max_leaves", [2, 5, 17])
def test_few_leaves_are_the_best_first_ones(max_leaves: int) -> None:
    for seed in range(2000, 2025):
        problem = random_problem(seed, kind="constrained")
        for max_depth in (None, 3):
            rules = replace(problem.rules, max_leaves=max_leaves, max_depth=max_depth, min_samples_leaf=1)
            changed = replace(problem, rules=rules)
            if is_clear_cut(changed, grow_tree(changed), 1e-9):
                assert_same_tree(changed, grow(changed))


@pytest.mark.parametrize("histogram_bytes", [0, 1 << 14])
def test_memory_for_histograms_changes_no_bit(histogram_bytes: int) -> None:
    for seed in range(1000, 1020):
        problem = random_problem(seed, kind="constrained")
        full, scarce = grow(problem), grow(problem, histogram_bytes=histogram_bytes)
        for name in ("feature", "bin", "left", "missing_left", "gain", "values"):
            np.testing.assert_array_equal(getattr(full, name), getattr(scarce, name), err_msg=name)


# ---- Monotone on a dense grid ---------------------------------------------------------------------------

SIGNS = np.array([[1, -1, 0, 1], [-1, 1, 1, 0], [0, 0, -1, 1], [0, 0, 0, 0], [1, 1, 1, 1]])


def table(n: int = 400, missing: float = 0.1, seed: int = 0) -> tuple[Any, Any]:
    """Features, with gaps, and four targets that are nowhere monotone."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, len(SIGNS)))
    Y = np.column_stack(
        [
            np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 3],
            X[:, 0] + np.cos(2 * X[:, 1]) - X[:, 4],
            X[:, 2] ** 2 - X[:, 4] * X[:, 0],
            X[:, 0] * X[:, 2] + X[:, 3],
        ]
    )
    Y += 0.3 * rng.normal(size=Y.shape)
    X[rng.random(X.shape) < missing] = np.nan
    Y[np.isnan(X[:, 0])] -= 5.0  # missing values tell a lot, against the sign of some outputs
    return X, Y


def steps(model: Any, X: Any, feature: int, n_rows: int = 25) -> Any:
    """Differences of raw scores along a dense grid of one feature: (rows, grid - 1, outputs)."""
    forest = model._forest
    cuts = np.unique(forest.threshold[forest.feature == feature])
    cuts = cuts[np.isfinite(cuts)]
    grid = np.unique(np.concatenate([np.linspace(-6, 6, 200), cuts, np.nextafter(cuts, np.inf)]))
    rows = np.repeat(X[:n_rows], len(grid), axis=0)
    rows[:, feature] = np.tile(grid, n_rows)
    raw = forest.predict_raw(rows)
    return np.diff(raw.reshape(n_rows, len(grid), -1), axis=1)


def assert_monotone(model: Any, X: Any, signs: Any) -> None:
    for feature in range(len(signs)):
        assert (signs[feature] * steps(model, X, feature) >= 0).all(), feature


REGRESSIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "deep": {"max_depth": None, "max_leaves": 60, "min_samples_leaf": 1},
    "exact bins": {"max_bins": None, "min_samples_leaf": 2},
    "few bins": {"max_bins": 4},
    "no L2": {"reg_lambda": 0.0},
    "L1": {"reg_alpha": 2.0},
    "large steps": {"learning_rate": 1.7},
    "one output per tree": {"multi_strategy": "one_output_per_tree"},
    "rows": {"subsample": 0.5},
    "rows by gradient": {"subsample": 0.4, "sampling_method": "gradient_based"},
    "columns": {"colsample_bytree": 0.8, "colsample_bylevel": 0.8, "colsample_bynode": 0.8},
    "not scaled": {"scale_targets": False},
    "interactions": {"interaction_constraints": [[0, 1], [2, 3, 4]]},
    "callable": {"objective": lambda y, raw: (raw - y, np.ones_like(y))},
}


@pytest.mark.parametrize("name", REGRESSIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_regression_is_monotone(name: str, weighted: bool) -> None:
    X, Y = table()
    Y[:, 3] *= 1e6
    weight = np.random.default_rng(1).exponential(size=len(X)) if weighted else None
    settings = {"n_estimators": 25, "min_samples_leaf": 5, "random_state": 0, **REGRESSIONS[name]}
    model = PolyleafRegressor(monotone_constraints=SIGNS, **settings).fit(X, Y, weight)
    assert_monotone(model, X, SIGNS)
    assert model.score(X, Y, weight) > 0.15
    free = PolyleafRegressor(**settings).fit(X, Y, weight)
    assert any((sign * steps(free, X, k) < 0).any() for k, sign in enumerate(SIGNS))


@pytest.mark.parametrize("hessian", ["diagonal", "shared"])
@pytest.mark.parametrize("seed", range(3))
def test_labels_are_monotone(hessian: str, seed: int) -> None:
    X, Y = table(seed=seed)
    labels = (np.median(Y, axis=0) < Y).astype(int)
    model = PolyleafClassifier(
        n_estimators=25, min_samples_leaf=3, hessian=hessian, monotone_constraints=SIGNS
    ).fit(X, labels)
    assert_monotone(model, X, SIGNS)


def test_two_classes_are_monotone_and_so_is_their_probability() -> None:
    X, Y = table()
    model = PolyleafClassifier(n_estimators=40, min_samples_leaf=3, monotone_constraints=[1, -1, 0, 0, 0])
    model.fit(X, Y[:, 0] > 0)
    assert_monotone(model, X, [1, -1, 0, 0, 0])
    row = np.repeat(X[:1], 100, axis=0)
    row[:, 0] = np.linspace(-5, 5, 100)
    probability = model.predict_proba(row)[:, 1]
    assert (np.diff(probability) >= 0).all()
    assert np.ptp(probability) > 0


def test_dense_clipped_labels_are_monotone() -> None:
    X, Y = table()
    model = PolyleafClassifier(
        n_estimators=20, objective="clipped_squared_error", min_samples_leaf=3, monotone_constraints=SIGNS
    ).fit(X, (Y > 0).astype(int))
    assert_monotone(model, X, SIGNS)


def test_a_vanishing_hessian_stays_monotone() -> None:
    X, Y = table()

    def steep(y: Any, raw: Any) -> tuple[Any, Any]:
        return raw - y, np.where(y > 0, 1e-12, 0.0)

    model = PolyleafRegressor(
        n_estimators=3, objective=steep, reg_lambda=0.0, base_score=0.0, monotone_constraints=SIGNS
    ).fit(X, Y)
    assert_monotone(model, X, SIGNS)


def test_a_true_constraint_costs_little_and_helps_against_noise() -> None:
    rng = np.random.default_rng(0)
    X, noise = rng.uniform(-1, 1, size=(2, 300, 2)), rng.normal(size=(300, 2))
    truth = np.stack([X[..., 0] ** 3 + X[..., 1], -X[..., 0]], axis=-1)
    settings = {"n_estimators": 100, "min_samples_leaf": 2}
    free = PolyleafRegressor(**settings).fit(X[0], truth[0] + noise)
    model = PolyleafRegressor(monotone_constraints=[[1, -1], [1, 0]], **settings)
    model.fit(X[0], truth[0] + noise)
    error = [np.mean((one.predict(X[1]) - truth[1]) ** 2) for one in (model, free)]
    assert error[0] < 0.8 * error[1]


def test_missing_values_are_not_ordered() -> None:
    """Those of a rising feature may lie above or below all others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 1))
    X[:200] = np.nan
    for level in (-9.0, 9.0):
        y = np.where(np.isnan(X[:, 0]), level, X[:, 0])
        model = PolyleafRegressor(n_estimators=120, monotone_constraints=[1]).fit(X, y)
        assert_monotone(model, np.zeros((25, 1)), [1])
        np.testing.assert_allclose(model.predict([[np.nan]]), level, atol=0.2)
        np.testing.assert_allclose(model.predict([[-1.0], [1.0]]), [-1, 1], atol=0.4)


def test_an_output_that_violates_leaves_the_split_to_the_others() -> None:
    """The pooled value on both sides, while the other output is split at will."""
    X = np.repeat([[0.0], [1.0]], 50, axis=0)
    Y = np.column_stack([np.repeat([1.0, -1.0], 50), np.repeat([3.0, -3.0], 50)])
    model = PolyleafRegressor(
        n_estimators=1, learning_rate=1.0, reg_lambda=0.0, base_score=0.0, monotone_constraints=[[1, 0]]
    ).fit(X, Y)
    np.testing.assert_allclose(model.predict([[0.0], [1.0]]), [[0, 3], [0, -3]], atol=1e-6)


@pytest.mark.parametrize("n_jobs", [2, 4])
@pytest.mark.parametrize("constraint", ["monotone", "interaction"])
def test_threads_change_no_bit(n_jobs: int, constraint: str) -> None:
    X, Y = table(3000)
    constraints: dict[str, Any] = {
        "monotone": {"monotone_constraints": SIGNS},
        "interaction": {"interaction_constraints": [[0, 1, 2], [2, 3, 4]]},
    }[constraint]
    models = [PolyleafRegressor(n_estimators=8, n_jobs=jobs, **constraints).fit(X, Y) for jobs in (1, n_jobs)]
    assert_same_forest(*models)


def assert_same_forest(one: Any, other: Any) -> None:
    for name, array in one._forest.to_arrays().items():
        np.testing.assert_array_equal(array, other._forest.to_arrays()[name], err_msg=name)


@pytest.mark.parametrize(
    "nothing",
    [
        {"monotone_constraints": [0] * 5},
        {"monotone_constraints": np.zeros((5, 4))},
        {"monotone_constraints": {}},
        {"monotone_constraints": {2: 0, 3: [0, 0, 0, 0]}},
        {"interaction_constraints": [[4, 3, 2, 1, 0]]},
        {"interaction_constraints": [[0], (0, 1, 2, 3, 4)]},
    ],
)
def test_no_constraint_in_other_words_changes_no_bit(nothing: dict[str, Any]) -> None:
    X, Y = table()
    assert_same_forest(
        PolyleafRegressor(n_estimators=5).fit(X, Y), PolyleafRegressor(n_estimators=5, **nothing).fit(X, Y)
    )


def test_constraints_that_never_bind_change_no_split() -> None:
    """Of a table that obeys them by itself."""
    X = np.arange(64, dtype=np.float64)[:, None]
    Y = np.column_stack([X[:, 0], -2 * X[:, 0]])
    settings = {"n_estimators": 10, "min_samples_leaf": 1, "reg_lambda": 0.0}
    free = PolyleafRegressor(**settings).fit(X, Y)
    model = PolyleafRegressor(monotone_constraints=[[1, -1]], **settings).fit(X, Y)
    np.testing.assert_array_equal(model._forest.feature, free._forest.feature)
    np.testing.assert_array_equal(model._forest.threshold, free._forest.threshold)
    np.testing.assert_allclose(model._forest.gain, free._forest.gain, rtol=1e-6)
    np.testing.assert_allclose(model.predict(X), free.predict(X), rtol=1e-6)


def test_outputs_without_a_sign_are_as_free_trees_have_them() -> None:
    """With one tree per output, the trees of an output without constraints are the plain ones."""
    X, Y = table()
    settings = {"n_estimators": 5, "multi_strategy": "one_output_per_tree"}
    signs = np.zeros((5, 4), dtype=int)
    signs[:, 2] = 1
    free = PolyleafRegressor(**settings).fit(X, Y).predict(X)
    bound = PolyleafRegressor(monotone_constraints=signs, **settings).fit(X, Y).predict(X)
    np.testing.assert_array_equal(np.delete(bound, 2, axis=1), np.delete(free, 2, axis=1))
    assert not np.array_equal(bound[:, 2], free[:, 2])


# ---- Interaction ----------------------------------------------------------------------------------------


def paths(model: Any) -> list[frozenset[int]]:
    """The features on the way to each leaf of each tree."""
    forest, found = model._forest, []
    for begin in forest.node_begin[:-1]:
        open_nodes = [(0, frozenset[int]())]
        while open_nodes:
            node, used = open_nodes.pop()
            left = int(forest.left[begin + node])
            if left < 0:
                found.append(used)
                continue
            used = used | {int(forest.feature[begin + node])}
            open_nodes += [(left, used), (left + 1, used)]
    return found


INTERACTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "deep": {"max_depth": None, "max_leaves": 40, "min_samples_leaf": 1},
    "columns": {"colsample_bytree": 0.8, "colsample_bylevel": 0.5, "colsample_bynode": 0.5},
    "rows": {"subsample": 0.4, "sampling_method": "gradient_based"},
    "sketch": {"sketch": "random_projection", "sketch_size": 2},
    "sparse leaves": {"sparse_leaves": 2},
    "one output per tree": {"multi_strategy": "one_output_per_tree"},
    "monotone": {"monotone_constraints": {0: [1, 0, 0, 0]}},
}


@pytest.mark.parametrize("name", INTERACTIONS)
@pytest.mark.parametrize("groups", [[[0, 1], [1, 2, 3]], [[0, 1, 2]], [], [[4, 0]]])
def test_no_path_mixes_groups(name: str, groups: list[list[int]]) -> None:
    X, Y = table(missing=0)
    settings = {"n_estimators": 15, "min_samples_leaf": 5, "random_state": 0, **INTERACTIONS[name]}
    model = PolyleafRegressor(interaction_constraints=groups, **settings).fit(X, Y)
    alone = set(range(5)) - {feature for group in groups for feature in group}
    allowed = [set(group) for group in groups] + [{feature} for feature in alone]
    used = paths(model)
    assert all(any(path <= group for group in allowed) for path in used)
    assert len(frozenset().union(*used)) > 1
    assert max(map(len, used)) >= min(2, len(groups) + 1)
    free = paths(PolyleafRegressor(**settings).fit(X, Y))
    assert not all(any(path <= group for group in allowed) for path in free)


@pytest.mark.parametrize("hessian", ["diagonal", "exact", "exact_leaf"])
def test_classes_obey_interaction_constraints(hessian: str) -> None:
    X, Y = table()
    model = PolyleafClassifier(n_estimators=10, hessian=hessian, interaction_constraints=[[0, 1], [2, 3]])
    used = paths(model.fit(X, Y.argmax(axis=1)))
    assert all(path <= {0, 1} or path <= {2, 3} or path <= {4} for path in used)
    assert max(map(len, used)) == 2


def test_sparse_labels_obey_interaction_constraints() -> None:
    X, Y = table()
    model = PolyleafClassifier(
        n_estimators=10,
        objective="clipped_squared_error",
        sparse_leaves=2,
        interaction_constraints=[[0, 1], [2, 3]],
    ).fit(X, scipy.sparse.csr_array((Y > 0).astype(int)))
    used = paths(model)
    assert all(path <= {0, 1} or path <= {2, 3} or path <= {4} for path in used)
    assert max(map(len, used)) == 2


def test_features_of_no_group_make_an_additive_model() -> None:
    """f(a, b) + f(a', b') = f(a, b') + f(a', b)."""
    X, Y = table(missing=0)
    predict = PolyleafRegressor(n_estimators=20, interaction_constraints=[]).fit(X, Y).predict
    a, b = X[:200].copy(), X[200:].copy()
    a[:, 0], b[:, 0] = X[200:, 0], X[:200, 0]
    np.testing.assert_allclose(predict(X[:200]) + predict(X[200:]), predict(a) + predict(b), atol=1e-9)


def test_small_shares_of_the_features_leave_a_node_without_any() -> None:
    """A level's sample may hold nothing that may meet the features above."""
    X, Y = table()
    model = PolyleafRegressor(
        n_estimators=30,
        interaction_constraints=[[0, 1]],
        colsample_bylevel=0.2,
        colsample_bynode=0.2,
        random_state=3,
    ).fit(X, Y)
    assert all(len(path) <= 2 for path in paths(model))


# ---- What may be written, and what is refused -----------------------------------------------------------


def framed() -> tuple[Any, Any]:
    pd = pytest.importorskip("pandas")
    X, Y = table()
    return pd.DataFrame(X, columns=list("abcde")), Y


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ([1, 0, -1, 0, 0], [[1] * 4, [0] * 4, [-1] * 4, [0] * 4, [0] * 4]),
        (np.array([1.0, 0, -1, 0, 0]), [[1] * 4, [0] * 4, [-1] * 4, [0] * 4, [0] * 4]),
        ({"a": 1, "c": -1}, [[1] * 4, [0] * 4, [-1] * 4, [0] * 4, [0] * 4]),
        ({0: 1, np.int64(2): np.int8(-1)}, [[1] * 4, [0] * 4, [-1] * 4, [0] * 4, [0] * 4]),
        ({"e": (1, -1, 0, 0), 1: [0, 0, 0, 1]}, [[0] * 4, [0, 0, 0, 1], [0] * 4, [0] * 4, [1, -1, 0, 0]]),
    ],
)
def test_the_same_constraints_in_other_words(written: Any, meant: Any) -> None:
    X, Y = framed()
    settings = {"n_estimators": 4, "min_samples_leaf": 3}
    assert_same_forest(
        PolyleafRegressor(monotone_constraints=written, **settings).fit(X, Y),
        PolyleafRegressor(monotone_constraints=meant, **settings).fit(X, Y),
    )


def test_groups_by_name_and_index_are_the_same() -> None:
    X, Y = framed()
    assert_same_forest(
        PolyleafRegressor(n_estimators=4, interaction_constraints=[["a", "b"], {"c", 3}]).fit(X, Y),
        PolyleafRegressor(n_estimators=4, interaction_constraints=[(1, 0, 1), np.array([2, 3])]).fit(X, Y),
    )


BAD: list[tuple[str, Any, type[Exception], str]] = [
    ("monotone_constraints", [1, 0], ValueError, r"shape \(2,\).*\(5,\).*\(5, 4\)"),
    ("monotone_constraints", np.ones((5, 3), dtype=int), ValueError, r"shape \(5, 3\)"),
    ("monotone_constraints", np.ones((4, 5), dtype=int), ValueError, r"shape \(4, 5\)"),
    ("monotone_constraints", np.ones((5, 4, 1), dtype=int), ValueError, "shape"),
    ("monotone_constraints", [], ValueError, "shape"),
    ("monotone_constraints", [1, 2, 0, 0, 0], ValueError, r"monotone_constraints\[1\] is 2"),
    ("monotone_constraints", [0.5, 0, 0, 0, 0], ValueError, r"\[0\] is 0.5"),
    ("monotone_constraints", [float("nan"), 0, 0, 0, 0], ValueError, r"\[0\] is nan"),
    ("monotone_constraints", [[1, 0], [1]], ValueError, "differ in length"),
    ("monotone_constraints", [True, 0, 0, 0, 0], TypeError, r"\[0\] is True"),
    ("monotone_constraints", ["+", 0, 0, 0, 0], TypeError, r"\[0\] is '\+'"),
    ("monotone_constraints", "increasing", TypeError, "increasing"),
    ("monotone_constraints", 1, TypeError, "must be"),
    ("monotone_constraints", {"a": 2}, ValueError, "is 2"),
    ("monotone_constraints", {"a": "up"}, TypeError, "up"),
    ("monotone_constraints", {"a": [1, 0]}, ValueError, r"\['a'\] has 2 sign\(s\).*4 output"),
    ("monotone_constraints", {"a": [[1, 0, 0, 0]]}, ValueError, "shape"),
    ("monotone_constraints", {"nowhere": 1}, ValueError, "'nowhere', which is not a column"),
    ("monotone_constraints", {5: 1}, ValueError, "feature 5, but X has the features 0 to 4"),
    ("monotone_constraints", {-1: 1}, ValueError, "feature -1"),
    ("monotone_constraints", {1.5: 1}, TypeError, "1.5"),
    ("monotone_constraints", {"a": 1, 0: -1}, ValueError, "feature 0 twice, as 'a' and as 0"),
    ("interaction_constraints", "ab", TypeError, "must be"),
    ("interaction_constraints", [0, 1], TypeError, r"interaction_constraints\[0\] must be"),
    ("interaction_constraints", ["ab"], TypeError, r"interaction_constraints\[0\] must be"),
    ("interaction_constraints", [[0, 1], []], ValueError, r"interaction_constraints\[1\] must be"),
    ("interaction_constraints", [[0, 5]], ValueError, "feature 5"),
    ("interaction_constraints", [["a", "z"]], ValueError, "'z', which is not a column"),
    ("interaction_constraints", [[0, 1.0]], TypeError, "1.0"),
    ("interaction_constraints", [[True, 1]], TypeError, "True"),
]


@pytest.mark.parametrize(("name", "value", "error", "message"), BAD)
def test_bad_constraints_are_named_before_any_work(
    name: str, value: Any, error: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, Y = framed()
    monkeypatch.setattr("polyleaf.estimators.fit.train", lambda *_: pytest.fail("training began"))
    with pytest.raises(error, match=message) as caught:
        PolyleafRegressor(**{name: value}).fit(X, Y)
    assert name in str(caught.value)


def test_names_need_a_table_with_names() -> None:
    X, Y = table()
    for constraints in ({"monotone_constraints": {"a": 1}}, {"interaction_constraints": [["a"]]}):
        with pytest.raises(ValueError, match="'a', but the columns of X have no names"):
            PolyleafRegressor(**constraints).fit(X, Y)


def softmax_by_hand(y: Any, raw: Any) -> tuple[Any, Any]:
    return raw, np.ones_like(raw)


@pytest.mark.parametrize(
    ("settings", "target", "reason"),
    [
        ({}, "classes", "softmax"),
        ({"objective": "cross_entropy"}, "two classes", "softmax"),
        ({"objective": softmax_by_hand}, "classes", "softmax"),
        ({"sparse_leaves": 2}, "labels", "sparse_leaves=2"),
        ({"sketch": "random_projection", "sketch_size": 2}, "labels", "sketch='random_projection'"),
        ({"objective": "clipped_squared_error", "sparse_leaves": 2}, "sparse labels", "sparse"),
        ({"hessian": "exact"}, "labels", "hessian='exact'"),
        ({"hessian": "exact_leaf"}, "labels", "hessian='exact_leaf'"),
    ],
)
def test_what_monotone_constraints_do_not_go_with(
    settings: dict[str, Any], target: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, Y = table()
    y = {
        "classes": Y.argmax(axis=1),
        "two classes": Y[:, 0] > 0,
        "labels": (Y > 0).astype(int),
        "sparse labels": scipy.sparse.csr_array((Y > 0).astype(int)),
    }[target]
    monkeypatch.setattr("polyleaf.estimators.fit.train", lambda *_: pytest.fail("training began"))
    with pytest.raises(ValueError, match=f"monotone_constraints do not go with.*{reason}"):
        PolyleafClassifier(monotone_constraints={0: 1}, **settings).fit(X, y)


def test_signs_of_zero_are_refused_nowhere() -> None:
    X, Y = table()
    settings = {"n_estimators": 3, "hessian": "exact"}
    assert_same_forest(
        PolyleafClassifier(monotone_constraints=[0] * 5, **settings).fit(X, Y.argmax(axis=1)),
        PolyleafClassifier(**settings).fit(X, Y.argmax(axis=1)),
    )


@pytest.mark.parametrize(
    "constraints",
    [
        {"monotone_constraints": SIGNS.tolist()},
        {"monotone_constraints": {"a": 1, 1: [0, -1, 0, 1]}},
        {"interaction_constraints": [["a", 1], ["c"]]},
        {"interaction_constraints": []},
    ],
)
def test_a_saved_model_keeps_its_constraints(constraints: dict[str, Any], tmp_path: Any) -> None:
    X, Y = framed()
    model = PolyleafRegressor(n_estimators=4, **constraints).fit(X, Y)
    model.save_model(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert_same_forest(model, loaded)
    for name, value in constraints.items():
        assert getattr(loaded, name) == value
    assert_same_forest(model, loaded.fit(X, Y))


# --- categories beside them --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_constraints_hold_beside_categories(seed: int) -> None:
    """Features other than the categorical ones rise and fall as told, whatever the category."""
    rng = np.random.default_rng(seed)
    X, Y = table(seed=seed)
    X = np.column_stack([X, rng.integers(0, 3 if seed % 2 else 30, len(X))])
    Y = Y + rng.normal(size=(40, Y.shape[1]))[X[:, -1].astype(int)]
    signs = np.vstack([SIGNS, np.zeros((1, Y.shape[1]), int)])
    model = PolyleafRegressor(
        n_estimators=20, min_samples_leaf=3, monotone_constraints=signs, categorical_features=[X.shape[1] - 1]
    ).fit(X, Y)
    assert (np.diff(model._forest.category_begin) > 0).any()
    assert_monotone(model, X, signs)


def test_a_constraint_on_categories_names_the_column() -> None:
    X, Y = table(60)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["colour"] = pd.Categorical(["red", "blue"] * 30)
    model = PolyleafRegressor(monotone_constraints={"colour": 1})
    with pytest.raises(ValueError, match="the categorical feature 'colour'"):
        model.fit(frame, Y)
