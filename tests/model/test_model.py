"""The forest: prediction equals a plain walk through the trees, and no array can lead it astray."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import numpy.typing as npt
import pytest

from polyleaf import PolyleafClassifier, PolyleafRegressor
from polyleaf.model.forest import Forest
from polyleaf.model.importance import importance

RNG = np.random.default_rng(7)
X = RNG.normal(size=(600, 5))
X[RNG.random(X.shape) < 0.1] = np.nan
Y = np.column_stack([np.nan_to_num(X[:, 0]) ** 2, np.isnan(X[:, 1]) * 1.0, np.nan_to_num(X[:, 2] * X[:, 3])])


def fitted(**parameters: object) -> Forest:
    return PolyleafRegressor(n_estimators=12, min_samples_leaf=5, **parameters).fit(X, Y)._forest


def walk(forest: Forest, row: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], list[int]]:
    """Raw score and leaves of one row, node by node."""
    raw = forest.base_score / forest.unit
    leaves = []
    for tree in range(forest.n_trees):
        first = forest.node_begin[tree]
        node = 0
        while forest.left[first + node] >= 0:
            value = row[forest.feature[first + node]]
            left = (
                forest.missing_left[first + node]
                if np.isnan(value)
                else value <= forest.threshold[first + node]
            )
            node = forest.left[first + node] + (0 if left else 1)
        leaves.append(node)
        begin, output, width = (
            forest.value_begin[first + node],
            forest.tree_output[tree],
            forest.tree_width[tree],
        )
        raw[output : output + width] += forest.values[begin : begin + width]
    return raw * forest.unit, leaves


@pytest.mark.parametrize("strategy", ["multi_output_tree", "one_output_per_tree"])
def test_prediction_is_the_sum_of_the_leaves_on_the_way(strategy: str) -> None:
    forest = fitted(multi_strategy=strategy)
    expected = [walk(forest, row) for row in X[:80]]
    np.testing.assert_array_equal(forest.predict_raw(X[:80]), [raw for raw, _ in expected])
    np.testing.assert_array_equal(forest.apply(X[:80]), [leaves for _, leaves in expected])


def test_dtypes_strides_and_threads_change_no_bit() -> None:
    grid = RNG.integers(-50, 50, size=(300, 5))
    forest = PolyleafRegressor(n_estimators=5).fit(grid, grid[:, :2] * 1.5)._forest
    expected = forest.predict_raw(grid.astype(np.float64))
    read_only = grid.astype(np.float32)
    read_only.flags.writeable = False
    variants = [
        grid,
        grid.astype(np.int8),
        np.asfortranarray(grid),
        read_only,
        np.repeat(grid, 2, axis=0)[::2],
    ]
    variants += [grid[::-1][::-1], np.hstack([grid, grid])[:, :5]]
    for variant in variants:
        for n_threads in (1, 3):
            np.testing.assert_array_equal(forest.predict_raw(variant, n_threads=n_threads), expected)


def test_stages_end_in_the_prediction() -> None:
    forest = fitted()
    stages = list(forest.staged_raw(X))
    assert len(stages) == forest.n_rounds == 12
    for rounds in (1, 5, 12):
        np.testing.assert_array_equal(stages[rounds - 1], forest.predict_raw(X, n_rounds=rounds))


def test_cover_and_count_of_a_node_are_those_of_its_children() -> None:
    forest = fitted()
    for tree in range(forest.n_trees):
        nodes = slice(forest.node_begin[tree], forest.node_begin[tree + 1])
        left = forest.left[nodes]
        inner = left >= 0
        for values in (forest.cover[nodes], forest.count[nodes]):
            assert values[0] == len(X)
            np.testing.assert_array_equal(values[inner], values[left[inner]] + values[left[inner] + 1])
        assert (forest.gain[nodes][inner] > 0).all()


def test_round_trip_through_arrays_pickle_and_copies() -> None:
    forest = fitted()
    expected = forest.predict_raw(X)
    for other in (
        Forest.from_arrays(forest.to_arrays()),
        pickle.loads(pickle.dumps(forest)),
        copy.deepcopy(forest),
    ):
        np.testing.assert_array_equal(other.predict_raw(X), expected)


def test_importance_counts_splits_and_sums_gains() -> None:
    forest = fitted()
    inner = forest.left >= 0
    assert importance(forest, "split").sum() == inner.sum()
    np.testing.assert_allclose(importance(forest, "gain").sum(), forest.gain.sum())
    assert importance(forest, "gain")[4] < importance(forest, "gain")[0]


def test_binary_forest_has_one_output() -> None:
    model = PolyleafClassifier(n_estimators=3).fit(X, Y[:, 1])
    assert model._forest.n_outputs == 1


BREAKAGES = {
    "a child before its parent": ("left", 0, 0),
    "a child beyond the tree": ("left", 0, 10**6),
    "a feature that does not exist": ("feature", 0, 5),
    "a negative feature": ("feature", 0, -1),
    "values out of range": ("value_begin", -1, 2**62),
    "negative value index": ("value_begin", -1, -5),
    "a tree of no outputs": ("tree_width", 0, 0),
    "a tree of too many outputs": ("tree_width", 0, 2**31 - 1),
    "an output that does not exist": ("tree_output", 0, 3),
    "nodes that no tree covers": ("node_begin", -1, 3),
    "trees out of order": ("node_begin", 1, 10**9),
    "a NaN threshold": ("threshold", 0, np.nan),
    "an infinite leaf": ("values", 0, np.inf),
    "an infinite base score": ("base_score", 0, np.inf),
    "a unit that is no power of two": ("unit", 0, 3.0),
    "a zero unit": ("unit", 0, 0.0),
    "no features": ("shape", 0, 0),
    "more outputs than arrays hold": ("shape", 1, 4),
    "a round of no trees": ("shape", 2, 0),
}


@pytest.mark.parametrize(("name", "index", "value"), BREAKAGES.values(), ids=BREAKAGES.keys())
def test_a_broken_forest_is_refused(name: str, index: int, value: float) -> None:
    arrays = {key: array.copy() for key, array in fitted().to_arrays().items()}
    arrays[name][index] = value
    with pytest.raises(ValueError, match="not a forest"):
        Forest.from_arrays(arrays)


def test_missing_superfluous_and_mistyped_arrays_are_refused() -> None:
    arrays = fitted().to_arrays()
    for changed in (
        {k: v for k, v in arrays.items() if k != "gain"},
        arrays | {"extra": np.zeros(1)},
        arrays | {"feature": arrays["feature"].astype(np.int64)},
        arrays | {"values": arrays["values"].reshape(1, -1)},
        arrays | {"gain": arrays["gain"][:-1]},
    ):
        with pytest.raises(ValueError, match="not a forest"):
            Forest.from_arrays(changed)


def test_sparse_leaves_cannot_reach_beyond_the_outputs() -> None:
    """Their outputs are counted from the first one: another beginning would lead past the end of a row."""
    forest = PolyleafRegressor(n_estimators=2, sparse_leaves=1).fit(X, Y)._forest
    arrays = {key: array.copy() for key, array in forest.to_arrays().items()}
    Forest.from_arrays(arrays)
    arrays["tree_output"][1] = 1
    with pytest.raises(ValueError, match="not a forest: a tree of sparse leaves"):
        Forest.from_arrays(arrays)


def test_a_forest_followed_by_another_is_their_sum() -> None:
    forest = fitted()
    both = forest.followed_by(forest)
    assert both.n_trees == 2 * forest.n_trees
    Forest.from_arrays(both.to_arrays())
    once = forest.predict_raw(X) - forest.base_score
    np.testing.assert_allclose(both.predict_raw(X) - forest.base_score, 2 * once, rtol=1e-9, atol=1e-12)
