"""Leaf values that are quantiles of the residuals: the core's are the oracle's, whatever else is wanted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import oracle
from growing import NAMES, settings, task
from oracle import Problem, grow_tree, renew_values, weighted_quantile
from polyleaf import PolyleafRegressor
from polyleaf.data.binning import bin_table
from polyleaf.data.sums import column_quantiles, weighted_mean
from polyleaf.growth.contract import Renewal
from polyleaf.growth.dense import DenseGrower
from polyleaf.growth.sampling import FeatureSample
from polyleaf.growth.tree import Tree
from problems import random_problem


def grow_renewed(problem, levels, y, raw, column, cell_weight=None, n_threads=1, unit=None):
    """The core's tree, with the raw scores it leaves behind."""
    rules = problem.rules
    table = problem.codes.astype(np.float64)
    table[problem.codes == problem.n_value_bins] = np.nan
    of_rules = {name: value for name, value in vars(rules).items() if name in NAMES}
    grower = DenseGrower(
        bin_table(table, problem.weight, 255, n_threads), settings(n_threads=n_threads, **of_rules)
    )
    raw = raw.copy()
    wanted = task(
        problem.gradient.astype(np.float32),
        None if problem.hessian is None else problem.hessian.astype(np.float32),
        problem.weight,
        gain_weight=rules.gain_weight,
        unit=unit,
        raw=raw,
        learning_rate=0.5,
        features=FeatureSample(None if rules.feature_mask is None else rules.feature_mask.astype(np.uint8)),
        renewal=Renewal(levels, y, column, cell_weight),
    )
    return grower.grow(wanted), raw


def drawn_targets(problem: Problem, rng: np.random.Generator):
    """Targets (fewer than outputs), scores with ties among the residuals, and levels: some NaN."""
    n, d = problem.gradient.shape
    n_targets = int(rng.integers(1, d + 1))
    column = np.sort(rng.integers(0, n_targets, size=d)).astype(np.int32)
    y = rng.normal(size=(n, n_targets))
    if rng.random() < 0.5:
        y = np.rint(2 * y)
    raw = np.rint(rng.normal(size=(n, d)))
    levels = rng.choice([0.5, 0.1, 0.25, 0.9, 1 / 3], size=d)
    levels[rng.random(d) < 0.3] = np.nan
    return y, raw, column, levels


def dense_values(tree: Tree, d: int):
    values = np.zeros((len(tree.values), d))
    if len(tree.outputs) > 0:
        np.put_along_axis(values, tree.outputs, tree.values, axis=1)
        return values
    return tree.values


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("cells", [False, True])
@pytest.mark.parametrize("block", range(3))
def test_renewed_values_are_the_oracles(kind, cells, block):
    """With row weights and cell weights, ties, sparse leaves, and outputs that are not renewed."""
    for seed in range(30 * block, 30 * (block + 1)):
        problem = random_problem(seed, kind=kind)
        rng = np.random.default_rng(seed)
        y, raw, column, levels = drawn_targets(problem, rng)
        n, d = raw.shape
        cell_weight = rng.choice([0.0, 1.0, 2.0, 0.7], size=(n, d)) if cells else None
        tree, after = grow_renewed(problem, levels, y, raw, column, cell_weight)
        weight = np.tile(problem.w[:, None], d) if cell_weight is None else cell_weight
        plain = grow_tree(problem)
        expected = renew_values(plain, y[:, column] - raw, weight, levels)
        assert tree.feature.tolist() == plain.feature.tolist()
        leaves = plain.feature < 0
        values = dense_values(tree, d)
        renewed = ~np.isnan(levels)
        np.testing.assert_array_equal(
            values[:, renewed], (0.5 * expected.value[leaves][:, renewed]).astype(np.float32)
        )
        np.testing.assert_allclose(
            values[:, ~renewed], 0.5 * plain.value[leaves][:, ~renewed], rtol=1e-5, atol=1e-5
        )
        number = np.cumsum(leaves) - 1
        np.testing.assert_array_equal(after, raw + values[number[plain.leaf]].astype(np.float64))


@pytest.mark.parametrize("n_threads", [2, 4])
def test_threads_change_no_bit(n_threads):
    """Enough rows for the threads to be used."""
    rng = np.random.default_rng(0)
    n, d = 60_000, 6
    codes = rng.integers(0, 20, size=(n, 3))
    gradient = np.sign(rng.normal(size=(n, d)) - codes[:, [0]] + 10)
    problem = Problem(
        codes,
        np.full(3, 20),
        np.zeros(3, bool),
        gradient,
        None,
        rng.random(n) + 0.1,
        oracle.Rules(max_depth=4),
    )
    y, raw = rng.normal(size=(n, d)), rng.normal(size=(n, d))
    levels, column = np.linspace(0.1, 0.9, d), np.arange(d, dtype=np.int32)
    for weight in (None, rng.random((n, d))):
        one = grow_renewed(problem, levels, y, raw, column, weight, 1)
        more = grow_renewed(problem, levels, y, raw, column, weight, n_threads)
        np.testing.assert_array_equal(one[0].values, more[0].values)
        np.testing.assert_array_equal(one[1], more[1])


def test_units_scale_the_values():
    """A value is stored as a multiple of its output's unit."""
    problem = random_problem(3)
    problem = replace(problem, rules=replace(problem.rules, reg_alpha=0.0))
    rng = np.random.default_rng(3)
    n, d = problem.gradient.shape
    y, raw, column = rng.normal(size=(n, d)), np.zeros((n, d)), np.arange(d, dtype=np.int32)
    plain, _ = grow_renewed(problem, np.full(d, 0.5), y, raw, column)
    unit = np.full(d, 2.0**900)
    scaled, after = grow_renewed(problem, np.full(d, 0.5), y * 2.0**900, raw, column, unit=unit)
    np.testing.assert_array_equal(plain.values, scaled.values)
    assert np.isfinite(after).all()


# --- the quantile itself -----------------------------------------------------------------------------------


def test_weighted_quantile_is_the_oracles_and_numpys():
    rng = np.random.default_rng(5)
    for _ in range(300):
        n = int(rng.integers(1, 30))
        values = np.rint(rng.normal(size=n) * rng.choice([2, 100]))
        weight = rng.integers(0, 4, size=n).astype(np.float64)
        level = float(rng.choice([0.05, 0.1, 0.25, 1 / 3, 0.5, 0.75, 0.95]))
        found = column_quantiles(values[:, None], weight, np.array([level]))[0]
        assert found == weighted_quantile(values, weight, level)
        repeated = np.repeat(values, weight.astype(int))
        if len(repeated) > 0:
            assert found == np.quantile(repeated, level, method="averaged_inverted_cdf")
        cells = np.column_stack([weight, weight[::-1]])
        both = column_quantiles(np.column_stack([values, values[::-1]]), cells, np.array([level, level]))
        assert both.tolist() == [found, found]


def test_weighted_mean_takes_every_form_of_weights():
    rng = np.random.default_rng(1)
    y = rng.normal(size=(50, 3)) * [1.0, 1e300, 1e-300]
    weight = rng.integers(0, 3, size=50).astype(np.float64)
    expected = np.average(y / [1.0, 1e300, 1e-300], axis=0, weights=weight)
    for form in (weight, np.tile(weight[:, None], 3)):
        np.testing.assert_allclose(weighted_mean(y, form) / [1.0, 1e300, 1e-300], expected, rtol=1e-12)
    assert weighted_mean(y, np.zeros((50, 3))).tolist() == [0, 0, 0]


# --- through the estimator ---------------------------------------------------------------------------------


def absolute(**params):
    return PolyleafRegressor(objective="absolute_error", n_jobs=1, random_state=0, **params)


def problem_of(n=400, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.column_stack([X[:, j] * (j + 1) + rng.standard_t(2, size=n) for j in range(d)])


def test_one_leaf_per_cell_is_the_median_of_its_rows():
    """A stump with learning rate 1 says the median of each side, whatever reg_lambda and reg_alpha are."""
    X, y = problem_of(d=1)
    model = absolute(
        n_estimators=1, max_depth=1, learning_rate=1.0, reg_lambda=10.0, reg_alpha=5.0, min_samples_leaf=1
    ).fit(X, y[:, 0])
    leaf = model.apply(X)[:, 0]
    assert len(np.unique(leaf)) == 2
    for node in np.unique(leaf):
        here = leaf == node
        np.testing.assert_allclose(model.predict(X[here]), np.median(y[here, 0]), rtol=1e-6)


def test_leaf_values_come_from_all_rows_with_gradient_based_sampling():
    X, y = problem_of(n=2000, d=2)
    model = absolute(
        n_estimators=1,
        max_depth=2,
        learning_rate=1.0,
        subsample=0.3,
        sampling_method="gradient_based",
    ).fit(X, y)
    leaf = model.apply(X)[:, 0]
    for node in np.unique(leaf):
        here = leaf == node
        np.testing.assert_allclose(model.predict(X[here])[0], np.median(y[here], axis=0), rtol=1e-5)


def test_leaf_values_come_from_the_sample_with_uniform_sampling():
    """The rest takes no part in the round."""
    X, y = problem_of(n=2000, d=2)
    model = absolute(n_estimators=1, max_depth=1, learning_rate=1.0, subsample=0.3).fit(X, y)
    leaf = model.apply(X)[:, 0]
    for node in np.unique(leaf):
        here = leaf == node
        assert not np.allclose(model.predict(X[here])[0], np.median(y[here], axis=0), rtol=1e-5)


def test_a_sketch_as_large_as_the_problem_changes_nothing():
    X, y = problem_of()
    plain = absolute(n_estimators=5).fit(X, y).predict(X)
    np.testing.assert_array_equal(
        absolute(n_estimators=5, sketch="top_outputs", sketch_size=3).fit(X, y).predict(X), plain
    )
    assert (absolute(n_estimators=5, sketch="top_outputs", sketch_size=1).fit(X, y).predict(X) != plain).any()


def test_sparse_leaves_of_all_outputs_equal_plain_ones():
    X, y = problem_of()
    np.testing.assert_array_equal(
        absolute(n_estimators=5, sparse_leaves=3).fit(X, y).predict(X),
        absolute(n_estimators=5).fit(X, y).predict(X),
    )
    one = absolute(n_estimators=1, sparse_leaves=1, sparse_mode="unrestricted").fit(X, y)
    moved = one.predict(X) != np.median(y, axis=0)
    assert (moved.sum(axis=1) <= 1).all()
    assert moved.any()


def test_one_output_per_tree_equals_single_models():
    X, y = problem_of()
    joint = absolute(n_estimators=6, multi_strategy="one_output_per_tree").fit(X, y).predict(X)
    for j in range(3):
        np.testing.assert_array_equal(absolute(n_estimators=6).fit(X, y[:, j]).predict(X), joint[:, j])


@pytest.mark.parametrize("objective", ["absolute_error", "quantile"])
def test_integer_weights_are_repeated_rows(objective):
    X, y = problem_of(n=300)
    weight = np.random.default_rng(2).integers(0, 4, size=300)
    model = PolyleafRegressor(objective=objective, n_estimators=8, min_samples_leaf=1, n_jobs=1)
    weighted = model.fit(X, y, sample_weight=weight).predict(X)
    np.testing.assert_array_equal(model.fit(X.repeat(weight, 0), y.repeat(weight, 0)).predict(X), weighted)


def test_boosting_is_the_oracles():
    """Several rounds, with weights: scores are the oracle's to the precision of float32 leaf values."""
    rng = np.random.default_rng(8)
    X = rng.integers(0, 12, size=(150, 3)).astype(np.float64)
    y = np.sin(X[:, [0]]) * [1, 2] + rng.normal(size=(150, 2))
    weight = rng.random(150) + 0.5
    levels = np.array([0.2, 0.8])
    rules = oracle.Rules(max_depth=3, gain_weight=np.tile(1 / (levels * (1 - levels)), 2))
    y_of_outputs, all_levels = np.repeat(y, 2, axis=1), np.tile(levels, 2)
    expected = oracle.boost(
        X.astype(np.int64),
        np.full(3, 12),
        y_of_outputs,
        weight,
        oracle.pinball(all_levels),
        rules,
        5,
        0.3,
    )
    model = PolyleafRegressor(
        objective="quantile",
        quantile_levels=levels,
        n_estimators=5,
        learning_rate=0.3,
        max_depth=3,
        min_samples_leaf=1,
        n_jobs=1,
    ).fit(X, y, sample_weight=weight)
    raw = model._raw(X, None)
    np.testing.assert_allclose(raw, expected.predict_raw(X.astype(np.int64)), rtol=1e-5, atol=1e-6)
