"""A tree that was just grown stays in the core, and is to others what a tree of arrays is."""

from __future__ import annotations

import pickle
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from growing import settings, task
from polyleaf.data.binned_rows import BinnedRows
from polyleaf.data.binning import bin_table
from polyleaf.growth.dense import DenseGrower
from polyleaf.growth.tree import GrownTree, Tree, joined_arrays
from polyleaf.model.forest import Forest
from polyleaf.model.scores import HostScores, Trees

pytestmark = pytest.mark.cpu_only("trees of the core")

RNG = np.random.default_rng(0)
N, D = 200, 3
TABLE = RNG.normal(size=(N, 5))
TABLE[::7, 1] = np.nan
TABLE[:, 2] = RNG.integers(0, 6, N)
MATRIX = bin_table(TABLE, None, 16, 1, np.array([0, 0, 1, 0, 0], dtype=np.uint8))
GRADIENT = (RNG.normal(size=(N, D)) + TABLE[:, [0]] + (TABLE[:, [2]] == 3)).astype(np.float32)
START = np.array([0.5, -1.0, 0.0])


def grown(gradient: Any = GRADIENT, **changes: Any) -> Tree:
    return DenseGrower(MATRIX, settings(min_samples_leaf=3, **changes)).grow(task(gradient))


def forest_of(trees: Trees) -> Forest:
    return Forest.from_trees(
        trees, n_features=5, trees_per_round=len(trees), base_score=START, unit=np.ones(D)
    )


ROUNDS = {
    "one tree": [(grown(), 0)],
    "a leaf alone": [(grown(max_depth=0), 0)],
    "sparse leaves": [(grown(sparse_leaves=2), 0)],
    "a tree for each output": [(grown(GRADIENT[:, [j]]), j) for j in range(D)],
}


@pytest.mark.parametrize(
    "table", [TABLE, TABLE.astype(np.float32), BinnedRows(MATRIX, str)], ids=["float64", "float32", "codes"]
)
@pytest.mark.parametrize("name", ROUNDS)
def test_adding_it_is_adding_its_forest(table: Any, name: str) -> None:
    trees = ROUNDS[name]
    assert all(isinstance(tree, GrownTree) for tree, _ in trees)
    straight, by_forest = HostScores(table, START, 1), HostScores(table, START, 2)
    for _ in range(2):
        added = straight.add_grown(trees, lambda: pytest.fail("no forest is needed"))
        expected = by_forest.add_round(forest_of(trees), 0)
        assert added.tobytes() == expected.tobytes()
    assert not np.array_equal(added, np.tile(START, (N, 1)))


def test_trees_of_arrays_go_by_their_forest() -> None:
    plain: Trees = [(pickle.loads(pickle.dumps(tree)), output) for tree, output in ROUNDS["one tree"]]
    table = BinnedRows(MATRIX, str)
    added = HostScores(table, START, 1).add_grown(plain, lambda: forest_of(plain))
    expected = HostScores(table, START, 1).add_grown(ROUNDS["one tree"], lambda: pytest.fail("not needed"))
    np.testing.assert_array_equal(added, expected)


@pytest.mark.parametrize("name", ROUNDS)
def test_a_pickle_of_it_is_a_tree_of_the_same_arrays(name: str) -> None:
    for tree, _ in ROUNDS[name]:
        back = pickle.loads(pickle.dumps(tree))
        assert type(back) is Tree
        for one in fields(Tree):
            value = getattr(tree, one.name)
            if value is None:
                assert getattr(back, one.name) is None
            else:
                np.testing.assert_array_equal(getattr(back, one.name), value, strict=True)


def test_its_arrays_outlive_it_and_cannot_be_changed() -> None:
    tree = grown()
    values, expected = tree.values, tree.values.copy()
    del tree
    np.testing.assert_array_equal(values, expected)
    with pytest.raises(ValueError, match="read-only"):
        values[0] = 1.0
    with pytest.raises(AttributeError):
        _ = grown().nothing  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="no array of this name"):
        joined_arrays([grown()], "nothing")


def test_the_forest_of_one_tree_is_the_first_of_several() -> None:
    tree = grown()
    one, two = forest_of([(tree, 0)]), forest_of([(tree, 0), (tree, 0)])
    for name, array in one.to_arrays().items():
        if name not in ("base_score", "unit", "shape"):
            np.testing.assert_array_equal(array, two.to_arrays()[name][: len(array)], strict=True)


def test_a_forest_of_trees_in_the_core_is_that_of_their_arrays() -> None:
    by_categories = grown((GRADIENT + 9 * np.isin(TABLE[:, [2]], (1, 3))).astype(np.float32), max_depth=2)
    trees: Trees = [(tree, 0) for tree in (grown(), grown(max_depth=0), by_categories, grown())]
    assert any(len(tree.category_bits) for tree, _ in trees)
    plain: Trees = [(pickle.loads(pickle.dumps(tree)), output) for tree, output in trees]
    expected = forest_of(plain).to_arrays()
    for some in (trees, [*trees[:2], *plain[2:]]):
        for name, array in forest_of(some).to_arrays().items():
            np.testing.assert_array_equal(array, expected[name], strict=True)


@pytest.mark.parametrize(
    ("rows", "outputs", "first", "message"),
    [(N - 1, D, 0, "not as many rows"), (N, D - 1, 0, "not all outputs"), (N, D, 1, "not all outputs")],
)
def test_scores_of_another_size_are_refused(rows: int, outputs: int, first: int, message: str) -> None:
    tree = grown()
    assert isinstance(tree, GrownTree)
    raw = np.zeros((rows, outputs))
    with pytest.raises(ValueError, match=message):
        tree.core.add_binned(MATRIX, first, raw, 1)
    with pytest.raises(ValueError, match=message):
        tree.core.add(TABLE, first, raw, 1)
    with pytest.raises(ValueError, match="a feature is missing"):
        tree.core.add(TABLE[:, :1], 0, np.zeros((N, D)), 1)
    assert not raw.any()
