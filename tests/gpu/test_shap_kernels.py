"""The kernels of Shapley values, compiled for the host, give the bits of the core. No GPU is needed."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from host_kernels import compiled, numpy_as_cupy

from polyleaf import PolyleafClassifier, PolyleafRegressor
from polyleaf.explain.shap import ForestShap
from polyleaf.gpu import predictor, shap

pytestmark = [
    pytest.mark.cpu_only("runs the kernels on the host"),
    pytest.mark.other_threads("runs a compiler"),
    pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler"),
]

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 7))
X[:, 4] = RNG.integers(0, 70, size=len(X))
X[RNG.random(X.shape) < 0.1] = np.nan
Z = np.nan_to_num(X, nan=0.6)
Y = np.column_stack([Z[:, 0] * Z[:, 1], np.sin(Z[:, 2]) + (Z[:, 4] % 3 == 0), Z[:, 3] * Z[:, 0] + Z[:, 5]])
SMALL: dict[str, Any] = {"n_estimators": 6, "max_depth": 6, "min_samples_leaf": 2, "random_state": 0}
OPTIONS: dict[str, dict[str, Any]] = {
    "joint": {},
    "categories": {"categorical_features": [4]},
    "one output per tree": {"multi_strategy": "one_output_per_tree"},
    "sparse leaves": {"sparse_leaves": 2},
    "sparse leaves of their own": {"sparse_leaves": 1, "sparse_mode": "unrestricted"},
    "many leaves": {"max_leaves": 200, "max_depth": None, "min_samples_leaf": 1},
    "stumps": {"max_depth": 1},
    "deep": {"max_depth": 30, "min_samples_leaf": 1, "learning_rate": 1.0},
    "no split": {"min_split_gain": 1e30},
}


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return compiled("explain.cuh", tmp_path_factory.mktemp("kernels"))


@pytest.fixture(autouse=True)
def on_host(kernels: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module = numpy_as_cupy()
    for of in (shap, predictor):
        monkeypatch.setattr(of, "cupy", lambda: module)
    monkeypatch.setattr(shap, "kernel", kernels)
    monkeypatch.setattr(shap, "free_memory", lambda: 2**30)


def both(forest: Any, outputs: Any, n_rounds: int | None = None) -> tuple[ForestShap, shap.GpuShap]:
    rounds = forest.n_rounds if n_rounds is None else n_rounds
    places = np.asarray(outputs, dtype=np.intp)
    return ForestShap(forest, rounds, places), shap.GpuShap(forest, rounds, places)


def check(forest: Any, table: Any = X, outputs: Any = None) -> Any:
    """Values have the bits of the core; absolute sums, all but the order."""
    outputs = np.arange(forest.n_outputs) if outputs is None else outputs
    core, kernel = both(forest, outputs)
    expected = core.values(table, np.dtype(np.float64), 1)
    for dtype in (np.dtype(np.float64), np.dtype(np.float32)):
        found = kernel.values(table, dtype, 1)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, expected.astype(dtype))
    for weight in (None, np.arange(len(table), dtype=np.float64) % 5):
        np.testing.assert_allclose(
            kernel.absolute_sums(table, 1, weight), core.absolute_sums(table, 1, weight), rtol=1e-12
        )
    return expected


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What has been planned, in order."""
    found: list[Any] = []
    plan = shap._plan

    def noted(*sizes: Any) -> Any:
        found.append(plan(*sizes))
        return found[-1]

    monkeypatch.setattr(shap, "_plan", noted)
    return found


@pytest.mark.parametrize("name", OPTIONS)
def test_every_forest(name: str, plans: list[Any]) -> None:
    forest = PolyleafRegressor(**{**SMALL, **OPTIONS[name]}).fit(X, Y)._forest
    expected = check(forest)
    assert all(plan.n_rows == 300 and len(plan.first_trees) == 2 for plan in plans)
    assert (np.abs(expected).max() > 0.01) == (name != "no split")
    check(forest, outputs=[2, 0])
    check(forest, outputs=[1])


def test_classes_units_and_a_chain_of_many_features() -> None:
    classes = np.digitize(Y[:, 0], [-0.5, 0, 0.5])
    check(PolyleafClassifier(**SMALL).fit(X, classes)._forest)
    check(PolyleafRegressor(**SMALL).fit(X, Y * [1e30, 1e-30, 1.0])._forest)
    ones = (RNG.random((2000, 14)) < 0.8).astype(np.float64)
    y = np.minimum.accumulate(ones, axis=1).sum(axis=1)
    model = PolyleafRegressor(n_estimators=1, max_depth=14, min_samples_leaf=1, learning_rate=1.0).fit(
        ones, y
    )
    check(model._forest, ones[:100])


@pytest.mark.parametrize("name", ["joint", "one output per tree", "sparse leaves of their own"])
@pytest.mark.parametrize("n_outputs", [1, 7, 8, 9, 20])
def test_outputs_in_pieces(n_outputs: int, name: str) -> None:
    y = Z @ RNG.normal(size=(7, n_outputs))
    forest = PolyleafRegressor(**SMALL, **OPTIONS[name]).fit(X, y)._forest
    check(forest)
    check(forest, outputs=RNG.permutation(n_outputs)[: max(1, n_outputs // 2)])


@pytest.mark.parametrize("along_y", [2**16 - 1, 2])
@pytest.mark.parametrize("name", [name for name in OPTIONS if name != "no split"])
def test_rows_and_trees_some_at_a_time(
    name: str, along_y: int, monkeypatch: pytest.MonkeyPatch, plans: list[Any]
) -> None:
    monkeypatch.setattr(shap, "_MOST_ALONG_Y", along_y)
    forest = PolyleafRegressor(**{**SMALL, **OPTIONS[name]}).fit(X, Y)._forest
    layout = both(forest, [0, 1, 2])[1]._core.layout()
    bytes_of_trees = 8 * len(layout["element_depth"])
    # A row at a time, then a few, with some of the trees each.
    for rows, room in ((X[:9], 2_000 + bytes_of_trees // 2), (X, 50 * (1_000 + bytes_of_trees // 3))):
        monkeypatch.setattr(shap, "_MOST_BYTES", room)
        check(forest, rows)
        assert any(plan.n_rows < len(rows) for plan in plans)
        assert any(len(plan.first_trees) > 2 for plan in plans)
        plans.clear()
    monkeypatch.setattr(shap, "_MOST_BYTES", 2**30)
    monkeypatch.setattr(shap, "_ENOUGH_ROWS", 128)
    check(forest)
    assert all(plan.n_rows == 128 for plan in plans)


@pytest.mark.parametrize("width", [1, 3, 11])
def test_outputs_of_trees_that_begin_anywhere(width: int) -> None:
    """Joint trees of some outputs side by side: a thread's outputs lie in several pieces of a tree's."""
    forest = PolyleafRegressor(**SMALL).fit(X, Z @ RNG.normal(size=(7, width)))._forest
    n_trees = len(forest.tree_output)
    spread = replace(
        forest,
        n_outputs=17 + width,
        tree_output=(np.arange(n_trees) * 5 % 17).astype(forest.tree_output.dtype),
        base_score=np.zeros(17 + width),
        unit=np.ones(17 + width),
    )
    expected = check(spread)
    assert (np.abs(expected).max(axis=(0, 1)) > 0).sum() > min(width + 3, 5)
    check(spread, outputs=np.arange(1, 17 + width, 2))


def test_trees_without_splits_among_others() -> None:
    options = {**SMALL, **OPTIONS["one output per tree"]}
    forest = PolyleafRegressor(**options).fit(X, Y * [0.0, 1.0, 0.0])._forest
    assert (np.diff(forest.node_begin) == 1).sum() > (np.diff(forest.node_begin) > 1).sum() > 0
    check(forest)
    check(forest, outputs=[2])


@pytest.mark.parametrize("room", [2**30, 300_000, 5_000, 700])
def test_what_fits_is_planned(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shap, "_MOST_BYTES", room)
    tree_bytes = np.array([200, 100, 0, 150, 50] * 4)
    plan = shap._plan(300, 500, tree_bytes)
    assert plan.n_rows == {2**30: 300, 300_000: 300, 5_000: 5, 700: 1}[room]
    assert plan.first_trees[0] == 0
    assert plan.first_trees[-1] == len(tree_bytes)
    groups = [tree_bytes[begin:end] for begin, end in pairwise(plan.first_trees)]
    assert all(len(group) > 0 and plan.n_rows * (500 + group.sum()) <= room for group in groups)
    # No group has room for the next tree.
    following = [tree_bytes[first] for first in plan.first_trees[1:-1]]
    assert all(
        plan.n_rows * (500 + group.sum() + one) > room
        for group, one in zip(groups[:-1], following, strict=True)
    )
    assert shap._plan(300, 500, tree_bytes[:0]).first_trees == [0]


def test_too_little_memory_for_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shap, "free_memory", lambda: 600)
    forest = PolyleafRegressor(**SMALL).fit(X, Y)._forest
    with pytest.raises(MemoryError, match=r"a row take .* of device memory; 0.6 KiB are free, and 0.3"):
        both(forest, [0])[1].values(X, np.dtype(np.float64), 1)


def test_tables_of_all_types_and_orders() -> None:
    forest = PolyleafRegressor(**SMALL, categorical_features=[4]).fit(X, Y)._forest
    smallest = np.finfo(np.float32).smallest_subnormal
    odd = X.copy()
    odd[:8, 4] = [-1.0, 0.5, 70.0, 1e9, np.nan, np.inf, -np.inf, 69.0]
    odd[10:14, 0] = [smallest, -smallest, np.inf, -np.inf]
    for table in (odd, odd.astype(np.float32), np.asfortranarray(odd), odd[::2], odd[:1]):
        check(forest, table)
    check(forest, (Z * 10).astype(np.int16))
    check(forest, (Z * 10).astype(np.int64))


def test_first_rounds_and_outputs_that_no_leaf_has() -> None:
    forest = PolyleafRegressor(**SMALL, sparse_leaves=1).fit(X, Y)._forest
    core, kernel = both(forest, [0, 1, 2], n_rounds=2)
    number = np.dtype(np.float64)
    np.testing.assert_array_equal(kernel.values(X, number, 1), core.values(X, number, 1))
    only = replace(forest, value_output=np.zeros_like(forest.value_output))
    core, kernel = both(only, [2])
    np.testing.assert_array_equal(kernel.values(X, number, 1), np.zeros((300, 7, 1)))


def test_what_the_cpu_does() -> None:
    """Sparse tables, pairs of features, no rows."""
    forest = PolyleafRegressor(**SMALL).fit(X, Y)._forest
    core, kernel = both(forest, [0, 1])
    number = np.dtype(np.float64)
    np.testing.assert_array_equal(
        kernel.values(scipy.sparse.csr_array(X), number, 1), core.values(X, number, 1)
    )
    assert kernel.values(X[:0], number, 1).shape == (0, 7, 2)
    places = np.arange(2)
    pairs = shap.GpuShap(forest, 6, places, interactions=True).values(X[:3], number, 1)
    expected = ForestShap(forest, 6, places, interactions=True).values(X[:3], number, 1)
    np.testing.assert_array_equal(pairs, expected)


def test_ways_are_copied_once_and_anew_for_other_outputs() -> None:
    forest = PolyleafRegressor(**SMALL).fit(X, Y)._forest
    number = np.dtype(np.float64)
    both(forest, [0])[1].values(X, number, 1)
    first = forest.on_gpu["shap", 0]
    both(forest, [0])[1].values(X, number, 1)
    assert forest.on_gpu["shap", 0] is first
    both(forest, [1])[1].values(X, number, 1)
    assert forest.on_gpu["shap", 0] is not first
