"""Splits by sets of categories: the oracle's, whatever the categories are called, and worth having."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import scipy.sparse
from test_growth_oracle import assert_same_tree, categories_of, grow

from growing import settings, task
from oracle import Problem, Tree, grow_tree
from polyleaf import PolyleafClassifier, PolyleafRegressor, load_model
from polyleaf.data.binning import bin_table
from polyleaf.growth.dense import DenseGrower
from polyleaf.model.forest import Forest
from problems import Kind, is_clear_cut, random_problem

Floats = npt.NDArray[np.float64]

MARGIN = 1e-9
ARRAYS = ("feature", "bin", "left", "missing_left", "category_begin", "category_bits", "gain", "values")


def categorical_problem(seed: int, kind: Kind | Literal["constrained"] = "dense") -> Problem | None:
    """A random problem some of whose features are categorical; None where its tree hangs on rounding."""
    problem = random_problem(seed, kind=kind)
    rng = np.random.default_rng(seed)
    categorical = rng.random(problem.codes.shape[1]) < 0.7
    if not categorical.any():
        return None
    rules = problem.rules
    if rules.monotone is not None:  # categories have no order
        signs = np.where(categorical[:, np.newaxis], 0, rules.monotone)
        rules = replace(rules, monotone=signs if signs.any() else None)
    changed = replace(problem, categorical=categorical, rules=rules)
    return changed if is_clear_cut(changed, grow_tree(changed), MARGIN) else None


def n_category_splits(tree: Tree) -> int:
    return sum(chosen is not None for chosen in tree.categories)


# ---- The oracle ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dense", "sparse", "exact", "exact_leaf", "constrained"])
@pytest.mark.parametrize("block", range(3))
def test_core_grows_the_oracles_tree(kind: Kind | Literal["constrained"], block: int) -> None:
    compared = splits = 0
    for seed in range(10_000 + 60 * block, 10_000 + 60 * (block + 1)):
        problem = categorical_problem(seed, kind)
        if problem is None:
            continue
        assert_same_tree(problem, grow(problem))
        compared += 1
        splits += n_category_splits(grow_tree(problem))
    assert compared >= 20
    assert splits >= 40


def test_a_category_split_of_two_outputs_by_hand() -> None:
    """Five categories that differ in the second output alone: the direction is that output's."""
    codes = np.repeat(np.arange(5), 20)
    effect = np.array([3.0, -3.0, 3.0, -3.0, 3.0])[codes]
    problem = Problem(
        codes=codes[:, None],
        n_value_bins=np.array([5]),
        has_missing=np.array([False]),
        gradient=np.stack([np.tile([1.0, -1.0], 50), effect], axis=1),
        hessian=None,
        weight=None,
        rules=replace(random_problem(0).rules, max_depth=1, max_leaves=None, **PLAIN_RULES),
        categorical=np.array([True]),
    )
    tree = grow(problem)
    assert_same_tree(problem, tree)
    # The gradient 3 asks for less than -3: {0, 2, 4} go left, the heavier side, and missing values with them.
    assert tree.missing_left[0] == 1
    assert categories_of(tree, 0) == {1, 3}
    assert tree.count.tolist() == [100, 60, 40]


@pytest.mark.parametrize("n_outputs", [32, 33, 70])
def test_many_outputs_grow_the_oracles_tree(n_outputs: int) -> None:
    """Products of all pairs of outputs are made for few of them alone."""
    compared = 0
    for seed in range(6):
        rng = np.random.default_rng([seed, n_outputs])
        codes = rng.integers(0, 9, size=(150, 2))
        effect = np.outer(rng.normal(size=9), rng.normal(size=n_outputs)) + 0.1 * rng.normal(
            size=(9, n_outputs)
        )
        problem = Problem(
            codes=codes,
            n_value_bins=np.array([9, 9]),
            has_missing=np.array([False, False]),
            gradient=effect[codes[:, 0]] + 0.3 * rng.normal(size=(150, n_outputs)),
            hessian=None,
            weight=None,
            rules=replace(random_problem(0).rules, max_depth=2, max_leaves=None, **PLAIN_RULES),
            categorical=np.array([True, seed % 2 == 0]),
        )
        if not is_clear_cut(problem, grow_tree(problem), MARGIN):
            continue
        assert n_category_splits(grow_tree(problem)) > 0
        assert_same_tree(problem, grow(problem))
        compared += 1
    assert compared >= 4


PLAIN_RULES: dict[str, Any] = {
    "min_samples_leaf": 1,
    "min_split_gain": 0.0,
    "min_child_weight": 0.0,
    "reg_lambda": 1.0,
    "reg_alpha": 0.0,
    "gain_weight": None,
    "feature_mask": None,
}


@pytest.mark.parametrize("histogram_bytes", [0, 1 << 14])
def test_memory_and_threads_change_no_bit(histogram_bytes: int) -> None:
    """Sums from histograms, by subtraction and straight from the rows are the same integers."""
    compared = 0
    for seed in range(11_000, 11_030):
        problem = categorical_problem(seed)
        if problem is None:
            continue
        one, other = grow(problem), grow(problem, n_threads=2, histogram_bytes=histogram_bytes)
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
        compared += 1
    assert compared > 15


@pytest.mark.parametrize("n_categories", [20, 300], ids=["codes of 8 bits", "codes of 16 bits"])
def test_threads_that_share_the_rows_of_a_node_change_no_bit(n_categories: int) -> None:
    """A node of so many rows is divided among threads, categories or not."""
    rng = np.random.default_rng(n_categories)
    X = np.c_[rng.integers(0, n_categories, 30_000), rng.normal(size=30_000)]
    X[rng.random(X.shape) < 0.05] = np.nan
    Y = rng.normal(size=(n_categories + 1, 2))[np.nan_to_num(X[:, 0], nan=n_categories).astype(int)]
    Y += np.nan_to_num(X[:, 1:])
    settings = {"n_estimators": 2, "max_depth": 3, "categorical_features": [0], "max_bins": 400}
    one, other = (PolyleafRegressor(**settings, n_jobs=n_jobs).fit(X, Y) for n_jobs in (1, 3))
    arrays, others = one._forest.to_arrays(), other._forest.to_arrays()
    assert arrays["category_bits"].any()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, others[name], err_msg=name)


# ---- Through the estimators ---------------------------------------------------------------------------


def table(n: int = 600, seed: int = 0, n_categories: int = 25) -> tuple[Floats, Floats, npt.NDArray[Any]]:
    """A column of many categories, one of three, numbers, gaps; three targets, and six classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 1] = rng.integers(0, n_categories, size=n)
    X[:, 3] = rng.integers(0, 3, size=n)
    effect = rng.normal(size=(n_categories, 3))
    Y = effect[X[:, 1].astype(int)] + (X[:, [3]] == 1) + X[:, [0]] + 0.3 * rng.normal(size=(n, 3))
    X[rng.random(X.shape) < 0.06] = np.nan
    return X, Y, np.argmax(np.hstack([Y, -Y]), axis=1)


def relabelled(X: Floats, column: int, seed: int = 1) -> Floats:
    """The same categories under other numbers, some of them large."""
    codes = np.random.default_rng(seed).permutation(9_999)[:200]
    out = X.copy()
    seen = ~np.isnan(X[:, column])
    out[seen, column] = codes[X[seen, column].astype(int)]
    return out


SETTINGS: dict[str, Any] = {
    "n_estimators": 12,
    "learning_rate": 0.1,
    "min_samples_leaf": 5,
    "categorical_features": [1, 3],
    "random_state": 0,
}
REGRESSORS: dict[str, dict[str, Any]] = {
    "plain": {},
    "several leaves": {"max_leaves": 9, "max_depth": None},
    "per output": {"multi_strategy": "one_output_per_tree"},
    "projection": {"sketch": "random_projection", "sketch_size": 2},
    "top outputs": {"sketch": "top_outputs", "sketch_size": 2},
    "sparse leaves": {"sparse_leaves": 2},
    "unrestricted": {"sparse_leaves": 2, "sparse_mode": "unrestricted"},
    "alpha": {"reg_alpha": 0.5, "min_child_weight": 10.0},
    "sampled": {"colsample_bynode": 0.7},  # rows are drawn by what they hold, which names are part of
    "by gradient": {"subsample": 0.6, "sampling_method": "gradient_based"},
    "exact bins": {"max_bins": None},
}
CLASSIFIERS: dict[str, dict[str, Any]] = {
    "diagonal": {"hessian": "diagonal"},
    "shared": {"hessian": "shared"},
    "exact": {"hessian": "exact"},
    "exact leaf": {"hessian": "exact_leaf"},
    "abs": {"softmax_curvature": "abs(p-y)"},
}
MODELS = [(PolyleafRegressor, extra) for extra in REGRESSORS.values()] + [
    (PolyleafClassifier, extra) for extra in CLASSIFIERS.values()
]


def raw(model: Any, X: Any) -> Floats:
    score = model.predict(X) if isinstance(model, PolyleafRegressor) else model.decision_function(X)
    return np.asarray(score)


@pytest.mark.parametrize(("kind", "extra"), MODELS, ids=[*REGRESSORS, *CLASSIFIERS])
@pytest.mark.parametrize("weighted", [False, True])
def test_names_of_categories_mean_nothing(kind: Any, extra: dict[str, Any], weighted: bool) -> None:
    """Relabelling and reordering the categories changes no prediction; threads change no bit."""
    X, Y, classes = table()
    y = Y if kind is PolyleafRegressor else classes
    weight = np.random.default_rng(2).integers(1, 4, len(X)).astype(float) if weighted else None
    model = kind(**SETTINGS | extra, n_jobs=1).fit(X, y, weight)
    assert (np.diff(model._forest.category_begin) > 0).sum() > 5
    other = relabelled(relabelled(X, 1), 3, seed=5)
    again = kind(**SETTINGS | extra, n_jobs=2).fit(other, y, weight)
    np.testing.assert_array_equal(raw(again, other), raw(model, X))
    threads = kind(**SETTINGS | extra, n_jobs=4).fit(X, y, weight)
    for name, array in model._forest.to_arrays().items():
        np.testing.assert_array_equal(threads._forest.to_arrays()[name], array, err_msg=name)


def test_weight_two_equals_the_row_twice() -> None:
    X, Y, _ = table(300)
    weight = np.random.default_rng(3).integers(1, 4, len(X))
    settings = SETTINGS | {"min_samples_leaf": 1, "max_depth": 4}
    weighted = PolyleafRegressor(**settings).fit(X, Y, weight)
    repeated = PolyleafRegressor(**settings).fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0))
    for name in ("feature", "left", "missing_left", "category_begin", "category_bits"):
        np.testing.assert_array_equal(getattr(weighted._forest, name), getattr(repeated._forest, name))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("sparse_mode", ["restricted", "unrestricted"])
@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_labels_give_the_forest_of_dense_ones(sparse_mode: str, weighted: bool) -> None:
    X, Y, _ = table()
    rng = np.random.default_rng(4)
    labels = (Y @ rng.normal(size=(3, 20)) > 2.5).astype(np.int64)
    weight = rng.integers(1, 4, len(X)).astype(float) if weighted else None
    settings = SETTINGS | {
        "objective": "clipped_squared_error",
        "sparse_leaves": 4,
        "sparse_mode": sparse_mode,
    }
    dense = PolyleafClassifier(**settings).fit(X, labels, weight)
    sparse = PolyleafClassifier(**settings).fit(X, scipy.sparse.csr_matrix(labels), weight)
    assert len(dense._forest.category_bits) > 5
    expected = dense._forest.to_arrays()
    for name, array in sparse._forest.to_arrays().items():
        # What chance would gain comes from gradients that are rounded, of sparse labels.
        tolerance = 1e-5 if name == "gain" else 0.0
        np.testing.assert_allclose(array, expected[name], rtol=tolerance, err_msg=name)


def reference_leaves(forest: Forest, X: Floats) -> npt.NDArray[np.int64]:
    """The leaf of each row in each tree, one step at a time."""
    out = np.zeros((len(X), forest.n_trees), dtype=np.int64)
    for t in range(forest.n_trees):
        first = forest.node_begin[t]
        for i, row in enumerate(X):
            node = 0
            while forest.left[first + node] >= 0:
                at = first + node
                value, missing_left = row[forest.feature[at]], bool(forest.missing_left[at])
                words = forest.category_bits[forest.category_begin[at] : forest.category_begin[at + 1]]
                if len(words) > 0:
                    whole = not np.isnan(value) and value == int(value) and 0 <= value < 32 * len(words)
                    left = (whole and bool(words[int(value) // 32] >> (int(value) % 32) & 1)) != missing_left
                else:
                    left = missing_left if np.isnan(value) else bool(value <= forest.threshold[at])
                node = forest.left[at] + (0 if left else 1)
            out[i, t] = node
    return out


def test_unseen_categories_go_where_missing_ones_go() -> None:
    X, Y, _ = table()
    model = PolyleafRegressor(**SETTINGS).fit(X, Y)
    missing = X[:50].copy()
    missing[:, 1] = np.nan
    for unseen in (25.0, 31.0, 32.0, 9_999.0, 12_345.0, 1e300, -1.0, -1e300, 3.5):
        other = missing.copy()
        other[:, 1] = unseen
        np.testing.assert_array_equal(model.predict(other), model.predict(missing))
    assert not np.array_equal(model.predict(X[:50]), model.predict(missing))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8])
def test_prediction_follows_the_sets(dtype: Any) -> None:
    """Many rows, single rows and all dtypes take the way of the plain walk."""
    X, Y, _ = table()
    model = PolyleafRegressor(**SETTINGS, n_jobs=2).fit(X, Y)
    rows = np.nan_to_num(X, nan=30.0).astype(dtype) if np.dtype(dtype).kind in "iu" else X.astype(dtype)
    expected = reference_leaves(model._forest, rows[:80].astype(np.float64))
    np.testing.assert_array_equal(model.apply(rows[:80]), expected)
    np.testing.assert_array_equal(model.apply(rows[:1]), expected[:1])
    np.testing.assert_array_equal(model.apply(np.asfortranarray(rows)[:80]), expected)
    np.testing.assert_array_equal(model._forest.apply(rows[:80]), expected)
    np.testing.assert_array_equal(
        model.predict(rows), np.vstack([model.predict(rows[i : i + 1]) for i in range(len(rows))])
    )


def test_training_scores_are_the_predictions() -> None:
    """Rows inside and outside of the sample take the same way in training as in prediction."""
    X, Y, _ = table()
    for extra in ({}, {"subsample": 0.5}, {"subsample": 0.5, "sampling_method": "gradient_based"}):
        model = PolyleafRegressor(**SETTINGS | extra).fit(X, Y, eval_set=(X, Y))
        history = model.evals_result_["validation_0"]["rmse"]
        assert history[-1] == pytest.approx(np.sqrt(np.mean((model.predict(X) - Y) ** 2)), rel=1e-12)
        assert history[-1] < 0.7 * history[0]


def test_a_category_split_beats_the_ordinal_encoding() -> None:
    """Sixty categories with effects on four targets that have nothing to do with their numbers."""
    rng = np.random.default_rng(0)
    n = 4_000
    category = rng.integers(0, 60, size=n)
    X = np.column_stack([category, rng.normal(size=(n, 4))])
    Y = rng.normal(size=(60, 4))[category] + X[:, [1]] + 0.5 * rng.normal(size=(n, 4))
    loss = {}
    for columns in (None, [0]):
        model = PolyleafRegressor(
            n_estimators=40, learning_rate=0.1, max_depth=4, categorical_features=columns
        )
        model.fit(X[:3_000], Y[:3_000])
        loss[columns is None] = np.mean((model.predict(X[3_000:]) - Y[3_000:]) ** 2)
    assert loss[False] < 0.6 * loss[True]
    assert loss[False] < 0.4


def test_categories_that_know_nothing_are_left_alone() -> None:
    """The more categories, the better their order fits noise; that is taken off the gain."""
    rng = np.random.default_rng(0)
    n = 3_000
    X = np.column_stack([rng.integers(0, 500, size=n), rng.normal(size=(n, 3))])
    Y = np.sin(2 * X[:, [1]]) + X[:, [2]] + rng.normal(size=(n, 2))
    model = PolyleafRegressor(n_estimators=30, categorical_features=[0]).fit(X, Y)
    assert model.feature_importances_[0] < 0.1
    without = PolyleafRegressor(n_estimators=30).fit(X[:, 1:], Y)
    other = np.column_stack([rng.integers(0, 500, size=n), rng.normal(size=(n, 3))])
    truth = np.sin(2 * other[:, [1]]) + other[:, [2]]
    error = np.mean((model.predict(other) - truth) ** 2)
    assert error < 1.5 * np.mean((without.predict(other[:, 1:]) - truth) ** 2)


def test_ten_thousand_categories() -> None:
    rng = np.random.default_rng(0)
    category = np.concatenate([np.arange(10_000), rng.integers(0, 10_000, size=30_000)])
    effect = rng.choice([-2.0, 2.0], size=(10_000, 1)) * np.array([1.0, -0.5])
    X = category[:, None].astype(np.float64)
    Y = effect[category] + rng.normal(size=(len(category), 2))
    model = PolyleafRegressor(n_estimators=30, learning_rate=0.3, categorical_features=[0], max_depth=2)
    model.fit(X, Y)
    assert bin_table(X, None, 16, 1, np.ones(1, np.uint8)).codes().max() == 9_999
    found = model.predict(np.arange(10_000.0)[:, None])
    assert np.mean(np.sign(found) == np.sign(effect)) > 0.95


@pytest.mark.parametrize("n_categories", [2, 3, 4])
def test_few_categories_are_told_apart_one_by_one(n_categories: int) -> None:
    X = np.repeat(np.arange(n_categories), 30)[:, None].astype(np.float64)
    Y = np.random.default_rng(0).normal(size=(n_categories, 2))[X[:, 0].astype(int)]
    model = PolyleafRegressor(n_estimators=1, categorical_features=[0], min_samples_leaf=1, max_depth=8)
    forest = model.fit(X, Y)._forest
    assert (forest.left >= 0).sum() == n_categories - 1
    for node in np.flatnonzero(forest.left >= 0):
        children = forest.count[forest.left[node]], forest.count[forest.left[node] + 1]
        assert min(children) == 30


def test_columns_without_a_choice() -> None:
    """One category, no value at all, one category and gaps."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    X[:, 0], X[:, 1], X[:, 2] = 7.0, np.nan, np.where(rng.random(200) < 0.5, 3.0, np.nan)
    y = np.isnan(X[:, 2]) + 0.1 * rng.normal(size=200)
    model = PolyleafRegressor(n_estimators=5, categorical_features=[0, 1, 2]).fit(X, y)
    assert (model.feature_importances_[:2] == 0).all()
    assert model.feature_importances_[2] > 0.5
    gap = model.predict([[7.0, np.nan, np.nan, 0.0]]) - model.predict([[7.0, np.nan, 3.0, 0.0]])
    assert gap > 0.2
    alone = PolyleafRegressor(n_estimators=3, categorical_features=[0]).fit(X[:, [1]], y)
    assert np.ptp(alone.predict(X[:, [1]])) == 0


def test_masks_and_indices_say_the_same() -> None:
    X, Y, _ = table()
    expected = PolyleafRegressor(**SETTINGS).fit(X, Y).predict(X)
    for columns in (
        (3, 1, 1),
        np.array([1, 3]),
        [False, True, False, True, False],
        np.array([0, 1, 0, 1, 0], dtype=bool),
    ):
        model = PolyleafRegressor(**SETTINGS | {"categorical_features": columns}).fit(X, Y)
        np.testing.assert_array_equal(model.predict(X), expected)
    for nothing in (None, [], [False] * 5, np.zeros(5, dtype=bool), "from_dtype"):
        model = PolyleafRegressor(**SETTINGS | {"categorical_features": nothing}).fit(X, Y)
        assert len(model._forest.category_bits) == 0


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ([5], ValueError, "holds 5, but the columns of X are numbered 0 to 4"),
        ([-1], ValueError, "holds -1"),
        ([True, False], ValueError, "mask of 2 columns, but X has 5"),
        ([[1]], ValueError, "categorical_features must be"),
        ([1.0], TypeError, "categorical_features must be"),
        ([True, 1], TypeError, "categorical_features must be"),
        (["a"], ValueError, "holds names, such as 'a', but X has no column names"),
        ("a", ValueError, "categorical_features must be"),
        (["a", 1], TypeError, "categorical_features must be"),
        (1, TypeError, "categorical_features must be"),
        ({1}, TypeError, "categorical_features must be"),
    ],
)
def test_bad_choices_of_columns(columns: Any, error: type[Exception], message: str) -> None:
    X, Y, _ = table(60)
    with pytest.raises(error, match=message):
        PolyleafRegressor(**SETTINGS | {"categorical_features": columns}).fit(X, Y)


@pytest.mark.parametrize("value", [-1.0, 0.5, 10_000.0, 1e30])
def test_any_number_is_a_category(value: float) -> None:
    """Only that numbers are equal counts; the core's own codes are another matter."""
    X, Y, _ = table(300)
    other = X.copy()
    other[X[:, 3] == 2.0, 3] = value
    one = PolyleafRegressor(**SETTINGS).fit(X, Y)
    same = PolyleafRegressor(**SETTINGS).fit(other, Y)
    np.testing.assert_allclose(one.predict(X), same.predict(other), rtol=1e-6)
    with pytest.raises(ValueError, match=r"column 3 holds .*, which is no category"):
        bin_table(other, None, 255, 1, np.array([0, 0, 0, 1, 0], np.uint8))


def words(column: Any) -> list[str | None]:
    return [None if np.isnan(value) else f"level {int(value):04}" for value in column]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("chosen", [None, "from_dtype", ["b", "d"], [1, 3]])
def test_categories_of_frames_are_those_of_arrays(library: str, chosen: Any) -> None:
    """Frames with a categorical dtype need no parameter; the text of a category does not matter."""
    pandas = pytest.importorskip("pandas")
    X, Y, _ = table(400)
    expected = PolyleafRegressor(**SETTINGS).fit(X, Y)
    frame = pandas.DataFrame(X, columns=list("abcde"))
    for name, j in (("b", 1), ("d", 3)):
        frame[name] = pandas.Categorical(words(X[:, j]))
    reordered = frame.assign(b=frame["b"].cat.reorder_categories(frame["b"].cat.categories[::-1]))

    def converted(table: Any) -> Any:
        if library == "pandas":
            return table
        if library == "polars":
            return pytest.importorskip("polars").from_pandas(table)
        return pytest.importorskip("pyarrow").Table.from_pandas(table)

    model = PolyleafRegressor(**SETTINGS | {"categorical_features": chosen}).fit(converted(frame), Y)
    np.testing.assert_array_equal(model._forest.category_bits, expected._forest.category_bits)
    np.testing.assert_array_equal(model.predict(converted(frame)), expected.predict(X))
    np.testing.assert_array_equal(model.predict(converted(reordered)), expected.predict(X))
    unseen = frame.assign(b="never seen")
    np.testing.assert_array_equal(
        model.predict(converted(unseen)), expected.predict(np.c_[X[:, :1], np.full(400, np.nan), X[:, 2:]])
    )


def test_text_needs_to_be_named() -> None:
    pandas = pytest.importorskip("pandas")
    X, Y, _ = table(200)
    frame = pandas.DataFrame(X, columns=list("abcde")).assign(b=words(X[:, 1]))
    with pytest.raises(ValueError, match="column 'b'"):
        PolyleafRegressor(n_estimators=2).fit(frame, Y)
    model = PolyleafRegressor(n_estimators=2, categorical_features=["b"]).fit(frame, Y)
    with pytest.raises(ValueError, match="column 'b' holds numbers, but its categories were text"):
        model.predict(frame.assign(b=1.0))
    with pytest.raises(ValueError, match="no column of X has that name"):
        PolyleafRegressor(categorical_features=["z"]).fit(frame, Y)


def test_too_many_categories_are_refused() -> None:
    X = np.arange(10_001.0)[:, None]
    with pytest.raises(ValueError, match="column 0 has 10,001 categories"):
        PolyleafRegressor(categorical_features=[0]).fit(X, X[:, 0])


def test_a_sparse_table_has_no_categories() -> None:
    X, Y, _ = table(100)
    with pytest.raises(ValueError, match="X is sparse; its columns cannot be categories"):
        PolyleafRegressor(categorical_features=[1]).fit(scipy.sparse.csr_array(np.nan_to_num(X)), Y)


def test_evaluation_sets_and_later_rounds_have_the_categories_of_fit() -> None:
    pandas = pytest.importorskip("pandas")
    X, Y, _ = table(400)
    frame = pandas.DataFrame(X, columns=list("abcde")).assign(b=pandas.Categorical(words(X[:, 1])))
    first, rest = frame[:250], frame[250:]
    settings = {"min_samples_leaf": 5, "random_state": 0, "subsample": 0.8}
    whole = PolyleafRegressor(n_estimators=6, **settings).fit(first, Y[:250], eval_set=(rest, Y[250:]))
    error = np.sqrt(np.mean((whole.predict(rest) - Y[250:]) ** 2))
    assert whole.evals_result_["validation_0"]["rmse"][-1] == pytest.approx(error)
    begun = PolyleafRegressor(n_estimators=2, **settings).fit(first, Y[:250])
    done = PolyleafRegressor(n_estimators=4, **settings).fit(first, Y[:250], init_model=begun)
    np.testing.assert_array_equal(done._forest.category_bits, whole._forest.category_bits)
    np.testing.assert_array_equal(done.predict(rest), whole.predict(rest))
    with pytest.raises(ValueError, match=r"init_model: the categorical features are the columns \[\]"):
        PolyleafRegressor(n_estimators=2).fit(X[:250], Y[:250], init_model=begun)


def test_categories_are_saved(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    X, Y, _ = table(300)
    frame = pandas.DataFrame(X, columns=list("abcde")).assign(b=pandas.Categorical(words(X[:, 1])))
    model = PolyleafRegressor(n_estimators=4, min_samples_leaf=5).fit(frame, Y)
    assert len(model._forest.category_bits) > 0
    model.save_model(tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict(frame), model.predict(frame))


def test_rows_without_weight_leave_no_category() -> None:
    X, Y, _ = table(200)
    weight = np.ones(200)
    weight[::2] = 0
    X[::2, 1] = 999.0
    model = PolyleafRegressor(**SETTINGS).fit(X, Y, weight)
    same = PolyleafRegressor(**SETTINGS).fit(X[1::2], Y[1::2])
    np.testing.assert_array_equal(model._forest.category_bits, same._forest.category_bits)


# ---- The binned table ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_each_category_has_a_bin_whatever_max_bins_is(dtype: Any) -> None:
    column = np.array([3.0, 700.0, np.nan, 3.0, 0.0, 9_999.0], dtype)
    matrix = bin_table(column[:, None], None, 2, 1, np.ones(1, np.uint8))
    assert matrix.categories(0).tolist() == [0, 3, 700, 9_999]
    assert matrix.codes()[:, 0].tolist() == [1, 2, 4, 1, 0, 3]
    others = np.array([[700.0], [4.0], [np.nan], [-5.0], [1e9], [3.25], [9_999.0]], dtype)
    assert matrix.encode(others, 1)[:, 0].tolist() == [2, 4, 4, 4, 4, 4, 3]
    assert bin_table(column[:, None], None, 2, 1).categories(0).tolist() == []


def test_gain_is_what_the_tree_takes_off_the_objective_but_for_chance() -> None:
    """Of few categories nothing is taken off: the gain is that of an ordinal split that tells the same."""
    X = np.repeat([0.0, 1.0], 40)[:, None]
    gradient = np.where(X == 0, -1.0, 2.0).astype(np.float32)
    trees = []
    for categorical in (None, np.ones(1, np.uint8)):
        grower = DenseGrower(bin_table(X, None, 255, 1, categorical), settings(max_depth=1))
        trees.append(grower.grow(task(gradient)))
    assert trees[0].gain[0] == trees[1].gain[0] > 0


# ---- The model file -----------------------------------------------------------------------------------


def test_round_trip(tmp_path: Path) -> None:
    X, Y, classes = table()
    for model in (
        PolyleafRegressor(**SETTINGS | {"categorical_features": np.array([1, 3])}).fit(X, Y),
        PolyleafClassifier(**SETTINGS | {"categorical_features": [False, True, False, True, False]}).fit(
            X, classes
        ),
    ):
        model.save_model(tmp_path / "model")
        loaded = load_model(tmp_path / "model")
        np.testing.assert_array_equal(raw(loaded, X), raw(model, X))
        np.testing.assert_array_equal(loaded.apply(X), model.apply(X))
        assert list(loaded.categorical_features) == list(model.categorical_features)


def forest_arrays() -> dict[str, npt.NDArray[Any]]:
    X, Y, _ = table()
    return PolyleafRegressor(**SETTINGS).fit(X, Y)._forest.to_arrays()


def test_arrays_of_the_first_format_have_no_categories() -> None:
    X, Y, _ = table()
    arrays = PolyleafRegressor(**SETTINGS | {"categorical_features": None}).fit(X, Y)._forest.to_arrays()
    old = {name: array for name, array in arrays.items() if not name.startswith("category")}
    np.testing.assert_array_equal(
        Forest.from_arrays(old).predict_raw(X), Forest.from_arrays(arrays).predict_raw(X)
    )


def test_hostile_sets_of_categories_are_refused() -> None:
    arrays = forest_arrays()
    Forest.from_arrays(arrays)
    leaf = int(np.flatnonzero(arrays["left"] < 0)[0])

    def changed(name: str, change: Any) -> dict[str, npt.NDArray[Any]]:
        copy = arrays[name].copy()
        result = change(copy)
        return arrays | {name: copy if result is None else result}

    def put(place: int, value: int) -> Any:
        def change(array: npt.NDArray[Any]) -> None:
            array[place] = value

        return change

    def shift_into_leaf(begin: npt.NDArray[Any]) -> None:
        begin[leaf + 1 :] = np.maximum(begin[leaf + 1 :], begin[leaf] + 1)

    n_words = len(arrays["category_bits"])
    hostile = [
        changed("category_begin", put(0, 1)),
        changed("category_begin", put(-1, n_words + 1)),
        changed("category_begin", put(-1, n_words - 1)),
        changed("category_begin", put(3, -1)),
        changed("category_begin", put(3, -(2**63))),
        changed("category_begin", put(3, 2**62)),
        changed("category_begin", put(3, n_words)),
        changed("category_begin", shift_into_leaf),
        changed("category_begin", lambda begin: begin[:-1]),
        changed("category_begin", lambda begin: begin.astype(np.int32)),
        changed("category_begin", lambda begin: begin[:, None]),
        changed("category_bits", lambda bits: bits[:-1]),
        changed("category_bits", lambda bits: bits.astype(np.int64)),
        {name: array for name, array in arrays.items() if name != "category_bits"},
        {name: array for name, array in arrays.items() if name != "category_begin"},
    ]
    for one in hostile:
        with pytest.raises(ValueError, match="not a forest"):
            Forest.from_arrays(one)


def test_a_set_beyond_the_last_category_is_refused() -> None:
    arrays = forest_arrays()
    node = int(np.flatnonzero(np.diff(arrays["category_begin"]) > 0)[0])
    begin = arrays["category_begin"].copy()
    begin[node + 1 :] += 320
    at = arrays["category_begin"][node + 1]
    bits = np.insert(arrays["category_bits"], at, np.zeros(320, np.uint32))
    with pytest.raises(ValueError, match="goes beyond 9999"):
        Forest.from_arrays(arrays | {"category_begin": begin, "category_bits": bits})


def test_auto_is_as_naming_the_columns_of_text():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"n": rng.normal(size=200), "t": rng.choice(["a", "b", "c"], 200)})
    y = frame["n"] + (frame["t"] == "b")
    named, auto = (
        PolyleafRegressor(n_estimators=5, categorical_features=chosen).fit(frame, y)
        for chosen in (["t"], "auto")
    )
    np.testing.assert_array_equal(auto.predict(frame), named.predict(frame))
    with pytest.raises(ValueError, match="mixes values of type int and str"):
        PolyleafRegressor(categorical_features="auto").fit(frame.assign(t=[1, "a"] * 100), y)


def test_auto_takes_the_text_of_a_list_of_rows_alone():
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(200, 2))
    text = np.array(["low", "mid", "top"])[rng.integers(3, size=200)]
    rows = [[word, *pair] for word, pair in zip(text.tolist(), numbers.tolist(), strict=True)]
    frame = pd.DataFrame({"a": text, "b": numbers[:, 0], "c": numbers[:, 1]})
    y = numbers[:, 0] + (text == "mid")
    settings = {"categorical_features": "auto", "n_estimators": 5}
    of_list = PolyleafRegressor(**settings).fit(rows, y)
    of_frame = PolyleafRegressor(**settings).fit(frame, y)
    np.testing.assert_array_equal(of_list.predict(rows), of_frame.predict(frame))
    np.testing.assert_array_equal(of_list.predict(rows[:1]), of_frame.predict(frame[:1]))
