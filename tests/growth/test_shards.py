"""Rows in several shards give the tree of all rows in one place, bit for bit."""

from dataclasses import fields, replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from polyleaf import _core
from polyleaf.data.binning import bin_sparse, bin_table
from polyleaf.growth.contract import Destination, LeafGradients, Renewal, SplitGradients, Task
from polyleaf.growth.dense import DenseGrower
from polyleaf.growth.sampling import FeatureSample, RowSample
from polyleaf.growth.tree import Tree
from polyleaf.params.constraints import InteractionGroups
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.exchange import ExchangeError
from polyleaf.peers.local import run_local
from polyleaf.peers.shard import Shard

pytestmark = pytest.mark.cpu_only("the growers of the CPU")


def settings_of(**options):
    grow = _core.GrowSettings()
    for name, value in {"max_depth": 5, "reg_lambda": 1.0, "min_samples_leaf": 3, **options}.items():
        setattr(grow, name, value)
    return grow


def problem(seed, n, m, d, *, kind="numbers", hessian=True, weighted=False):
    """A table as bins, and a task of all its rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    gradient = (rng.normal(size=(n, d)) + X[:, :1]).astype(np.float32)
    categorical = None
    if kind == "zeros":
        X[rng.random(X.shape) < 0.6] = 0
    elif kind == "gaps":
        X[rng.random(X.shape) < 0.2] = np.nan
    elif kind == "few values":
        X = X.round()
    elif kind == "categories":
        X[:, 0], X[:, -1] = rng.integers(0, 12, n), rng.integers(0, 3, n)
        categorical = np.zeros(m, dtype=np.uint8)
        categorical[[0, -1]] = 1
    weight = rng.uniform(0.5, 2, n) if weighted else None
    diagonal = (rng.random((n, d)) + 0.1).astype(np.float32) if hessian else None
    matrix = bin_table(X, weight, 255, 1, categorical)
    ones = np.ones(d)
    task = Task(
        LeafGradients(gradient, diagonal, ones),
        SplitGradients(gradient, diagonal, None, ones, ones),
        weight,
        learning_rate=0.1,
    )
    return matrix, task


def rows_of(task, rows):
    """The same task on some of its rows."""

    def some(values):
        return None if values is None else np.ascontiguousarray(values[rows])

    leaves, splits, renewal = task.leaf_gradients, task.split_gradients, task.leaf_gradients.renewal
    if renewal is not None:
        renewal = replace(renewal, y=some(renewal.y), cell_weight=some(renewal.cell_weight))
    sample = task.sample
    if sample.rows is not None:
        sample = RowSample(np.flatnonzero(np.isin(rows, sample.rows)).astype(np.uint32))
    destination = task.destination
    return replace(
        task,
        leaf_gradients=replace(
            leaves, gradient=some(leaves.gradient), hessian=some(leaves.hessian), renewal=renewal
        ),
        split_gradients=replace(
            splits,
            gradient=some(splits.gradient),
            hessian=some(splits.hessian),
            curvature=some(splits.curvature),
        ),
        weight=some(task.weight),
        sample=sample,
        destination=Destination(some(destination.raw), some(destination.leaf_of_row)),
    )


def assert_same(matrix, task, grow, parts):
    """Grow the tree of all rows, and that of shards with these rows."""
    n = matrix.n_rows
    leaf_of_row = np.empty(n, dtype=np.uint32)
    raw = None if task.destination.raw is None else task.destination.raw.copy()
    whole = replace(task, destination=Destination(raw, leaf_of_row))
    expected = DenseGrower(matrix, grow).grow(whole)

    def grown(exchange):
        rows = parts[exchange.rank]
        starts = np.flatnonzero(np.diff(rows, prepend=-2) != 1)
        runs = np.column_stack([starts, rows[starts]]).astype(np.int64)
        peers = Collectives(exchange)
        before = replace(task, destination=Destination(task.destination.raw, leaf_of_row))
        own = replace(rows_of(before, rows), shard=Shard(peers, n, runs))
        tree = DenseGrower(matrix.take(rows.astype(np.uint32), 1), grow).grow(own)
        return tree, own.destination, peers.n_exchanges

    results = run_local(len(parts), grown)
    for rows, (tree, destination, _) in zip(parts, results, strict=True):
        for one in fields(Tree):
            value = getattr(expected, one.name)
            if value is not None:
                np.testing.assert_array_equal(getattr(tree, one.name), value, err_msg=one.name, strict=True)
        np.testing.assert_array_equal(destination.leaf_of_row, leaf_of_row[rows])
        if raw is not None:
            np.testing.assert_array_equal(destination.raw, raw[rows])
    return expected, results[0][2]


def cut(n, n_shards, seed):
    """Rows of each shard: some of them none, in one piece or in several."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        owner = rng.integers(0, n_shards, n)
    else:
        owner = np.searchsorted(np.sort(rng.integers(0, n + 1, n_shards - 1)), np.arange(n), side="right")
    return [np.flatnonzero(owner == rank) for rank in range(n_shards)]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.sampled_from([30, 400, 2500]),
    m=st.integers(1, 25),
    d=st.sampled_from([1, 3, 10, 40]),
    kind=st.sampled_from(["numbers", "zeros", "gaps", "few values", "categories"]),
    hessian=st.booleans(),
    weighted=st.booleans(),
    n_shards=st.integers(1, 7),
    options=st.sampled_from(
        [
            {},
            {"max_leaves": 7},
            {"max_depth": None, "max_leaves": 9},
            {"n_threads": 3, "max_leaves": 12},
            {"histogram_bytes": 0},
            {"histogram_bytes": 200_000},
            {"reg_alpha": 0.3, "min_split_gain": 0.01, "min_child_weight": 2.0},
            {"histogram_precision": "packed"},
            {"min_samples_leaf": 40},
        ]
    ),
)
def test_shards_give_the_same_tree(seed, n, m, d, kind, hessian, weighted, n_shards, options):
    if m == 1 and kind == "categories":
        kind = "numbers"
    matrix, task = problem(seed, n, m, d, kind=kind, hessian=hessian, weighted=weighted)
    assert_same(matrix, task, settings_of(**options), cut(n, n_shards, seed))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("level", [0.01, 0.3, 0.5, 0.99])
@pytest.mark.parametrize("decimals", [0, 1, 9])
def test_renewed_leaves_of_shards(level, decimals, weighted):
    """Also where residuals are equal, and where the quantile is halfway between two."""
    matrix, task = problem(5, 700, 6, 3, hessian=False, weighted=weighted)
    rng = np.random.default_rng(1)
    y = rng.normal(size=(700, 3)).round(decimals)
    levels = np.array([level, np.nan, 0.5])
    if weighted:
        task = replace(task, weight=rng.integers(1, 4, 700).astype(float))
    renewal = Renewal(levels, y, np.arange(3, dtype=np.int32))
    task = replace(
        task,
        leaf_gradients=replace(task.leaf_gradients, renewal=renewal),
        destination=Destination(raw=np.zeros((700, 3))),
    )
    for n_shards in (1, 2, 5):
        assert_same(matrix, task, settings_of(), cut(700, n_shards, n_shards))
    cells = replace(renewal, cell_weight=rng.integers(0, 3, (700, 3)).astype(float))
    task = replace(task, leaf_gradients=replace(task.leaf_gradients, renewal=cells))
    assert_same(matrix, task, settings_of(), cut(700, 3, 1))


@pytest.mark.parametrize(
    "options", [{"sparse_leaves": 2}, {"sparse_leaves": 2, "sparse_mode": "unrestricted"}]
)
def test_sparse_leaves_of_shards(options):
    matrix, task = problem(2, 600, 8, 5)
    assert_same(matrix, task, settings_of(**options), cut(600, 4, 3))


def test_constraints_and_samples_of_shards():
    matrix, task = problem(3, 900, 12, 4)
    rng = np.random.default_rng(0)
    signs = rng.integers(-1, 2, (12, 4)).astype(np.int8)
    groups = InteractionGroups(np.array([0, 3, 6, 12]), np.arange(12, dtype=np.int32))
    mask = (np.arange(12) % 3 > 0).astype(np.uint8)
    sample = RowSample(np.sort(rng.choice(900, 500, replace=False)).astype(np.uint32))
    alone = RowSample(np.arange(40, dtype=np.uint32))  # of the first shard only
    for change in (
        {"monotone": signs},
        {"features": FeatureSample(mask, 0.7, 0.6, 11)},
        {"features": FeatureSample(groups=groups)},
        {"sample": sample},
        {"sample": alone},
    ):
        assert_same(matrix, replace(task, **change), settings_of(), cut(900, 3, 2))


def wide_problem(n_outputs, hessian=True):
    """A table of few cells, listed feature by feature, in several tiles."""
    _, task = problem(8, 600, 1, n_outputs, hessian=hessian)
    rng = np.random.default_rng(8)
    X = np.zeros((600, 900))
    X.flat[rng.choice(X.size, 1800, replace=False)] = rng.normal(size=1800)
    gradient = (task.leaf_gradients.gradient + 3 * X[:, :1]).astype(np.float32)
    leaves = replace(task.leaf_gradients, gradient=gradient)
    splits = replace(task.split_gradients, gradient=gradient)
    matrix = bin_sparse(scipy.sparse.csr_array(X), None, 255, 1, keeps_codes=False)
    assert matrix.n_listing_cells == 900
    return matrix, replace(task, leaf_gradients=leaves, split_gradients=splits)


@pytest.mark.parametrize("precision", ["full", "packed"])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_wide_tables_in_shards(precision, n_threads):
    rng = np.random.default_rng(1)
    mask = (rng.random(900) < 0.4).astype(np.uint8)
    sample = RowSample(np.sort(rng.choice(600, 400, replace=False)).astype(np.uint32))
    few = RowSample(np.arange(90, dtype=np.uint32))  # of the first shard many, of the others none
    grow = settings_of(histogram_precision=precision, n_threads=n_threads)
    for n_outputs, hessian in ((1, False), (10, True)):
        matrix, task = wide_problem(n_outputs, hessian)
        for change in ({}, {"features": FeatureSample(mask)}, {"sample": sample}, {"sample": few}):
            for seed in (2, 3):
                assert_same(matrix, replace(task, **change), grow, cut(600, 3, seed))


def test_of_packed_sums_nothing_else_is_sent():
    """Of features that the tree may not use there are none, nor what was in the memory before."""
    matrix, task = wide_problem(10)
    mask = (np.random.default_rng(2).random(900) < 0.1).astype(np.uint8)
    task = replace(task, features=FeatureSample(mask))
    most = 24 * 2 * (matrix.codes() != np.median(matrix.codes(), axis=0))[:, mask == 1].sum()
    sent = []

    class Counting(Collectives):
        def exchange_parts(self, parts, n_threads):
            sent.append(sum(np.count_nonzero(part) for part in parts))
            return super().exchange_parts(parts, n_threads)

    def grown(exchange):
        rows = np.arange(600) if exchange.rank == 0 else np.arange(0)
        runs = np.zeros((1 if len(rows) else 0, 2), dtype=np.int64)
        own = replace(rows_of(task, rows), shard=Shard(Counting(exchange), 600, runs))
        grow = settings_of(histogram_precision="packed", max_depth=1)
        return DenseGrower(matrix.take(rows.astype(np.uint32), 1), grow).grow(own)

    run_local(2, grown)
    assert 0 < max(sent) <= most


def test_curvature_of_rows_in_shards():
    matrix, task = problem(4, 800, 7, 6, hessian=False)
    curvature = np.random.default_rng(0).random(800).astype(np.float32)
    task = replace(task, split_gradients=replace(task.split_gradients, curvature=curvature))
    assert_same(matrix, task, settings_of(), cut(800, 3, 5))


def test_exchanges_grow_with_the_depth_and_not_with_the_leaves():
    matrix, task = problem(6, 3000, 10, 2)
    counts = {}
    for depth in (3, 6):
        for leaves in (None, 8):
            grow = settings_of(max_depth=depth, max_leaves=leaves, min_samples_leaf=1)
            tree, counts[depth, leaves] = assert_same(matrix, task, grow, cut(3000, 2, 2))
            assert (tree.leaf.max() + 1 == 8) == bool(leaves or depth == 3)
    assert counts[6, None] - counts[3, None] == 6  # two a level
    assert counts[6, None] >= counts[6, 8]


def test_what_shards_cannot_do_is_refused_by_all():
    matrix, task = problem(7, 60, 3, 2, weighted=True)
    wide = replace(task, weight=np.geomspace(1, 1e12, 60))
    labels = replace(task.leaf_gradients, label=np.zeros(60, dtype=np.int32))
    exact = replace(task, leaf_gradients=labels)
    drawn = replace(task, sample=RowSample(np.arange(30, dtype=np.uint32), np.ones(60)))
    for refused, options, words in (
        (wide, {}, "2\\^30 times"),
        (exact, {"hessian": "exact_leaf"}, "exact Hessian"),
        (drawn, {}, "weights of a sample"),
    ):

        def grown(exchange, refused=refused, options=options):
            shard = Shard(Collectives(exchange), 120, np.array([[0, 60 * exchange.rank]]))
            return DenseGrower(matrix, settings_of(**options)).grow(replace(refused, shard=shard))

        with pytest.raises(ValueError, match=words):
            run_local(2, grown)


def test_a_shard_that_fails_ends_the_others():
    matrix, task = problem(8, 60, 3, 2)
    bad = replace(task.leaf_gradients, gradient=np.full((60, 2), np.nan, dtype=np.float32))
    both = replace(task.split_gradients, gradient=bad.gradient)

    def grown(exchange):
        shard = Shard(Collectives(exchange), 120, np.array([[0, 60 * exchange.rank]]))
        if exchange.rank == 1:
            raise RuntimeError("this shard is broken")
        return DenseGrower(matrix, settings_of()).grow(replace(task, shard=shard))

    with pytest.raises(RuntimeError, match="broken") as caught:
        run_local(2, grown)
    assert not isinstance(caught.value, ExchangeError)

    def not_finite(exchange):
        own = task if exchange.rank else replace(task, leaf_gradients=bad, split_gradients=both)
        shard = Shard(Collectives(exchange), 120, np.array([[0, 60 * exchange.rank]]))
        return DenseGrower(matrix, settings_of()).grow(replace(own, shard=shard))

    with pytest.raises(OverflowError, match="not finite"):
        run_local(2, not_finite)
