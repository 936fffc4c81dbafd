"""Device memory is planned: histograms never take more than is free, and what cannot fit is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from least_memory import least_memory
from polyleaf.gpu.memory import MOST_NODES, QUAD, HistogramPlan, Layout, Shape, plan_histograms

pytestmark = [
    pytest.mark.cpu_only("plans are made without a GPU"),
    pytest.mark.python_only("plans are made without the core"),
]

GIB = 2**30


def shape(**changes: Any) -> Shape:
    """A problem of 30 quads of features and levels of up to 32 nodes."""
    sizes = {
        "n_rows": 10_000,
        "n_features": 118,
        "n_bins": 64,
        "n_outputs": 5,
        "layout": Layout(5, diagonal=False, weighted=True),
        "max_depth": 6,
        "max_leaves": None,
        "min_samples_leaf": 20,
    }
    return Shape(**(sizes | changes))


def node_bytes(problem: Shape) -> int:
    return problem.quad_bytes * problem.n_quads


# --- channels ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layout", "hessian", "count", "weight"),
    [
        (Layout(3, diagonal=False, weighted=False), -1, 3, 3),
        (Layout(3, diagonal=False, weighted=True), -1, 3, 4),
        (Layout(3, diagonal=True, weighted=False), 3, 6, 6),
        (Layout(3, diagonal=True, weighted=True), 3, 6, 7),
        (Layout(1, diagonal=False, weighted=False), -1, 1, 1),
    ],
)
def test_channels_stand_one_after_the_other(layout: Layout, hessian: int, count: int, weight: int) -> None:
    """Gradients, Hessians, rows, weight; where rows are counted anyway, they are the weight."""
    assert (layout.hessian_channel, layout.count_channel, layout.weight_channel) == (hessian, count, weight)


@pytest.mark.parametrize(
    ("used", "lanes", "n_channels"),
    [
        (2, 8, 8),
        (7, 8, 8),
        (8, 8, 8),
        (9, 16, 16),
        (15, 16, 16),
        (16, 16, 16),
        (17, 32, 32),
        (31, 32, 32),
        (32, 32, 32),
        (33, 32, 64),
        (64, 32, 64),
        (65, 32, 96),
        (1001, 32, 1024),
    ],
)
def test_channels_are_padded_to_tiles(used: int, lanes: int, n_channels: int) -> None:
    """The tile is the smallest that holds all channels; with many there are several of 32."""
    layout = Layout(used - 1, diagonal=False, weighted=False)
    assert (layout.lanes, layout.n_channels) == (lanes, n_channels)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("diagonal", [False, True])
def test_every_channel_has_its_place(diagonal: bool, weighted: bool) -> None:
    for n_outputs in range(1, 140):
        layout = Layout(n_outputs, diagonal, weighted)
        of_hessians = range(layout.hessian_channel, layout.hessian_channel + n_outputs) if diagonal else ()
        used = [*range(n_outputs), *of_hessians, layout.count_channel]
        used += [layout.weight_channel] if weighted else []
        assert used == list(range(len(used)))
        assert 0 <= layout.n_channels - len(used) < layout.lanes
        assert layout.n_channels % layout.lanes == 0
        assert 32 % layout.lanes == 0


# --- the size of a problem ---------------------------------------------------------------------------------


def test_nodes_double_until_rows_or_leaves_are_used_up() -> None:
    problem = shape(max_depth=12)
    assert [problem.nodes_at(level) for level in (-1, 0, 1, 5, 8, 9, 10, 11)] == [
        *(1, 1, 2, 32, 256),
        *(500, 500, 500),  # of 20 rows each
    ]
    assert problem.most_leaves == 500
    assert problem.most_nodes == 999
    assert shape(max_depth=3).most_nodes == 15


@pytest.mark.parametrize("n_rows", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("min_samples_leaf", [1, 3, 20, 1000])
@pytest.mark.parametrize(("max_depth", "max_leaves"), [(1, None), (4, None), (None, 5), (40, 3), (None, 200)])
def test_no_tree_has_more_nodes_than_counted(
    n_rows: int, min_samples_leaf: int, max_depth: int | None, max_leaves: int | None
) -> None:
    """Also of the lopsided ones: rows are split off one leaf at a time, in the middle, or anywhere."""
    problem = shape(
        n_rows=n_rows, min_samples_leaf=min_samples_leaf, max_depth=max_depth, max_leaves=max_leaves
    )
    deepest = n_rows if max_depth is None else max_depth
    rng = np.random.default_rng(n_rows)
    for choose in (lambda low, high: low, lambda low, high: (low + high) // 2, rng.integers):
        level, n_nodes, depth = [n_rows], 1, 0
        while depth < deepest:
            # What is searched: the two children of a split, where one of them has rows enough.
            assert len(level) <= problem.nodes_at(depth)
            children = []
            for rows in level:
                if rows >= 2 * min_samples_leaf:
                    left = int(choose(min_samples_leaf, rows - min_samples_leaf + 1))
                    children += [left, rows - left]
            if not children:
                break
            level, n_nodes, depth = children, n_nodes + len(children), depth + 1
        assert n_nodes <= problem.most_nodes
        assert len(level) <= problem.most_leaves
        assert depth <= problem.depth


def test_leaves_are_scarce_where_depth_would_allow_more() -> None:
    assert shape(max_leaves=63).leaves_are_scarce
    assert not shape(max_leaves=64).leaves_are_scarce
    assert not shape(max_leaves=None).leaves_are_scarce
    assert shape(max_depth=None, max_leaves=1000).leaves_are_scarce
    assert not shape(max_depth=None, max_leaves=2**30).leaves_are_scarce
    # Five rows: at most four levels of splits.
    assert not shape(n_rows=5, max_depth=None, max_leaves=16).leaves_are_scarce


def test_few_leaves_make_few_likely_nodes() -> None:
    """Only both children of splits that may be kept are searched, unless gains tie."""
    problem = shape(max_depth=None, max_leaves=9)
    assert [problem.likely_nodes_at(level) for level in (0, 1, 3, 4, 5, 30)] == [1, 2, 8, 16, 16, 16]
    assert problem.nodes_at(30) == 500
    assert shape(max_depth=None, max_leaves=2).likely_nodes_at(7) == 2
    free = shape(max_leaves=None)
    assert [free.likely_nodes_at(level) for level in range(6)] == [free.nodes_at(level) for level in range(6)]


def test_depth_is_bounded_by_rows() -> None:
    assert shape(n_rows=1).depth == 0
    assert shape(n_rows=4).depth == 3
    assert shape(n_rows=4, max_depth=None, max_leaves=3).depth == 3
    assert shape(n_rows=10**9, max_depth=None, max_leaves=3).depth < 2**31


def test_the_data_are_counted() -> None:
    """At least codes, targets, scores, gradients and what histograms sum: that much is allocated for sure."""
    for diagonal in (False, True):
        for n_outputs in (1, 5, 100):
            layout = Layout(n_outputs, diagonal, weighted=True)
            problem = shape(n_outputs=n_outputs, layout=layout)
            n = problem.n_rows
            codes = np.zeros((problem.n_quads, 1, QUAD), dtype=np.uint8).nbytes * n
            doubles = 2 * np.zeros((1, n_outputs)).nbytes * n
            floats = (2 if diagonal else 1) * np.zeros((1, n_outputs), dtype=np.float32).nbytes * n
            assert codes + doubles + floats <= problem.data_bytes <= codes + doubles + floats + 100 * n
            assert problem.work_bytes >= n * layout.n_channels * 4


@pytest.mark.parametrize("name", ["n_rows", "n_outputs"])
def test_more_data_need_more_memory(name: str) -> None:
    small, large = shape(), shape(**{name: 2 * getattr(shape(), name)})
    assert large.data_bytes > small.data_bytes
    assert large.work_bytes > small.work_bytes


# --- the plan ----------------------------------------------------------------------------------------------


def test_two_levels_are_kept_where_they_fit() -> None:
    """The last level to be searched and its parents; more memory changes nothing."""
    problem = shape()
    wanted = (32 + 16) * node_bytes(problem)
    plan = HistogramPlan(n_bytes=wanted, slice_nodes=32, slice_quads=30)
    for with_data in (False, True):
        for free in (least_memory(problem, wanted, with_data=with_data), 1000 * GIB):
            assert plan_histograms(problem, free, with_data=with_data) == plan


@pytest.mark.parametrize("n_nodes", [1, 2, 3, 31, 32])
def test_nodes_are_sliced(n_nodes: int) -> None:
    problem = shape()
    free = least_memory(problem, n_nodes * node_bytes(problem))
    plan = HistogramPlan(n_nodes * node_bytes(problem), slice_nodes=n_nodes, slice_quads=30)
    assert plan_histograms(problem, free, with_data=False) == plan
    less = plan_histograms(problem, free - 1, with_data=False)
    assert (less.slice_nodes, less.slice_quads) == ((n_nodes - 1, 30) if n_nodes > 1 else (1, 29))


@pytest.mark.parametrize("n_quads", [1, 2, 29, 30])
def test_features_are_sliced_where_not_even_a_node_fits(n_quads: int) -> None:
    problem = shape()
    free = least_memory(problem, n_quads * problem.quad_bytes)
    plan = HistogramPlan(n_quads * problem.quad_bytes, slice_nodes=1, slice_quads=n_quads)
    assert plan_histograms(problem, free, with_data=False) == plan


def is_named(n_bytes: int, message: str) -> bool:
    sizes = {"GiB": 2**30, "MiB": 2**20}
    return any(f" {n_bytes / size:.2f} {unit}" in message for unit, size in sizes.items())


def test_what_cannot_fit_is_refused_with_its_sizes() -> None:
    problem = shape(n_rows=123_456, n_outputs=789)
    for with_data in (False, True):
        needed = problem.work_bytes + (problem.data_bytes if with_data else 0)
        too_little = least_memory(problem, problem.quad_bytes, with_data=with_data) - 1
        assert too_little > needed
        for free in (too_little, needed // 3, 0):
            with pytest.raises(MemoryError) as caught:
                plan_histograms(problem, free, with_data=with_data)
            message = str(caught.value)
            assert "123456 rows x 118 features -> 789 outputs" in message
            assert all(is_named(size, message) for size in (needed, problem.quad_bytes, free)), message
            assert "device='cpu'" in message


@pytest.mark.parametrize("diagonal", [False, True])
def test_a_million_rows_and_a_thousand_outputs_fit_80_gib(diagonal: bool) -> None:
    """With every level whole: the larger child of each split is a subtraction."""
    problem = shape(
        n_rows=1_000_000,
        n_features=100,
        n_bins=256,
        n_outputs=1000,
        layout=Layout(1000, diagonal, weighted=True),
    )
    plan = plan_histograms(problem, 80 * GIB, with_data=True)
    assert plan.slice_quads == 25
    assert plan.slice_nodes == 32
    assert plan.n_bytes == (32 + 16) * node_bytes(problem)
    with pytest.raises(
        MemoryError, match=r"1000000 rows x 100 features -> 1000 outputs need .* GiB are free"
    ):
        plan_histograms(problem, 8 * GIB, with_data=True)


def test_deep_and_leaf_wise_trees_stay_within_the_limits_of_a_launch() -> None:
    deep = shape(n_rows=10_000_000, max_depth=20, min_samples_leaf=1)
    assert plan_histograms(deep, 10**15, with_data=True).slice_nodes == MOST_NODES
    leaf_wise = shape(n_rows=10_000_000, max_depth=None, max_leaves=31, min_samples_leaf=1)
    plan = plan_histograms(leaf_wise, 10**15, with_data=True)
    assert plan.n_bytes == 2 * 60 * node_bytes(leaf_wise)


@pytest.mark.parametrize("n_rows", [1, 2, 3])
@pytest.mark.parametrize(("max_depth", "max_leaves"), [(1, None), (6, None), (None, 2), (6, 31)])
def test_tiny_tables_are_planned_too(n_rows: int, max_depth: int | None, max_leaves: int | None) -> None:
    problem = shape(
        n_rows=n_rows,
        n_features=1,
        n_bins=1,
        min_samples_leaf=1,
        max_depth=max_depth,
        max_leaves=max_leaves,
    )
    plan = plan_histograms(problem, GIB, with_data=True)
    assert plan.slice_quads == 1
    assert plan.slice_nodes >= 1
    assert plan.n_bytes >= problem.quad_bytes


def random_shape(rng: np.random.Generator) -> Shape:
    n_outputs = int(np.exp(rng.uniform(0, 7)))
    k = n_outputs if rng.random() < 0.7 else int(rng.integers(1, n_outputs + 1))
    max_depth = None if rng.random() < 0.3 else int(rng.integers(1, 20))
    return shape(
        n_rows=int(np.exp(rng.uniform(0, 14))),
        n_features=int(np.exp(rng.uniform(0, 7))),
        n_bins=int(rng.integers(1, 257)),
        n_outputs=n_outputs,
        layout=Layout(k, bool(rng.integers(2)), bool(rng.integers(2))),
        max_depth=max_depth,
        max_leaves=int(rng.integers(2, 300)) if max_depth is None or rng.random() < 0.3 else None,
        min_samples_leaf=int(rng.integers(1, 50)),
    )


@pytest.mark.parametrize("with_data", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_plans_keep_to_the_budget_and_grow_with_it(seed: int, with_data: bool) -> None:
    """Never more than is free, never a slice that does not fit, never less for more memory."""
    rng = np.random.default_rng(seed)
    n_plans = 0
    for _ in range(100):
        problem = random_shape(rng)
        needed = problem.work_bytes + (problem.data_bytes if with_data else 0)
        least = least_memory(problem, problem.quad_bytes, with_data=with_data)
        # Not much more than what is needed at the least.
        assert needed + problem.quad_bytes <= least <= 1.2 * (needed + 2 * problem.quad_bytes) + 2**20
        budgets = np.sort(np.exp(rng.uniform(np.log(least) - 1, np.log(least) + 8, size=12)).astype(np.int64))
        before: HistogramPlan | None = None
        for free in map(int, budgets):
            if free < least:
                with pytest.raises(MemoryError):
                    plan_histograms(problem, free, with_data=with_data)
                continue
            plan = plan_histograms(problem, free, with_data=with_data)
            n_plans += 1
            assert plan.n_bytes + needed <= free
            assert plan.n_bytes % problem.quad_bytes == 0
            assert 1 <= plan.slice_quads <= problem.n_quads
            assert 1 <= plan.slice_nodes <= min(problem.nodes_at(63), MOST_NODES)
            assert plan.slice_quads * problem.quad_bytes <= plan.n_bytes
            if plan.slice_nodes > 1:
                assert plan.slice_quads == problem.n_quads
                assert plan.slice_nodes * node_bytes(problem) <= plan.n_bytes
            if before is not None:
                assert plan.n_bytes >= before.n_bytes
                assert plan.slice_nodes >= before.slice_nodes
                assert plan.slice_quads >= before.slice_quads
            before = plan
    assert n_plans > 500


def test_a_sketch_needs_less() -> None:
    whole = shape(n_outputs=500, layout=Layout(500, diagonal=False, weighted=True))
    sketched = replace(whole, layout=Layout(5, diagonal=False, weighted=True))
    assert sketched.quad_bytes < whole.quad_bytes / 50
    assert sketched.work_bytes < whole.work_bytes
