"""Equal rows have the same number, others have not; neither order nor shards nor a unit make a difference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from polyleaf import PolyleafClassifier, PolyleafRegressor, _core
from polyleaf.data.row_hashes import row_hashes
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.current import summed_over
from polyleaf.peers.local import run_local

pytestmark = pytest.mark.cpu_only("rows are hashed on the host")

RNG = np.random.default_rng(0)
# Forty kinds of rows, most of them with several targets.
X = RNG.integers(0, 3, size=(200, 4)).astype(np.float64)
Y = RNG.choice([0.0, 1.0, 2.0], p=[0.6, 0.2, 0.2], size=(200, 3))
Y[RNG.random(Y.shape) < 0.05] = np.nan


def matrix_of(table: Any) -> Any:
    return _core.bin_table(table, None, None, 1)


def hashes_of(table: Any, y: Any) -> Any:
    return row_hashes(matrix_of(table), y, None, 1)


def kinds(numbers: Any) -> Any:
    """Which rows are together, as numbers in the order of their first rows."""
    _, first, inverse = np.unique(numbers, axis=0, return_index=True, return_inverse=True)
    return first[inverse.reshape(-1)]


@pytest.mark.parametrize("y", [Y, Y[:, :1], Y[:, 0]], ids=["targets", "one column", "one target"])
def test_rows_are_told_apart_by_features_and_targets(y: Any) -> None:
    together = np.column_stack([X, np.where(np.isnan(y), 9, y)])
    np.testing.assert_array_equal(kinds(hashes_of(X, y)), kinds(together))
    assert len(np.unique(kinds(X))) < len(np.unique(kinds(together))) < len(X)


def test_rows_of_the_same_features_and_targets_are_those_of_the_features() -> None:
    table = RNG.normal(size=(100, 2))
    twice, y = np.repeat(table, 2, axis=0), np.repeat(RNG.normal(size=100), 2)
    np.testing.assert_array_equal(hashes_of(twice, y), matrix_of(twice).row_hashes(1))
    y[0] += 1  # the kind of this row is another one now, and so is that of its copy
    changed = hashes_of(twice, y) != matrix_of(twice).row_hashes(1)
    assert np.flatnonzero(changed).tolist() == [0, 1]


def test_neither_order_nor_a_power_of_two_matters() -> None:
    hashes, order = hashes_of(X, Y), RNG.permutation(len(X))
    matrix = matrix_of(X)
    np.testing.assert_array_equal(
        row_hashes(matrix.take(order.astype(np.uint32), 1), Y[order], None, 1), hashes[order]
    )
    np.testing.assert_array_equal(hashes_of(X, Y * 2.0**-40), hashes)
    np.testing.assert_array_equal(hashes_of(X, np.where(Y == 0, -0.0, Y)), hashes)


def test_compressed_targets_tell_apart_what_dense_ones_do() -> None:
    y = (Y > 0).astype(float)
    stored = scipy.sparse.csr_array(y)
    cells = np.append(stored.data, 0.0), np.append(stored.indices, 1)
    indptr = np.append(stored.indptr[:-1], stored.indptr[-1] + 1)
    with_zeros = scipy.sparse.csr_array((*cells, indptr), shape=y.shape)
    for sparse in (stored, with_zeros, scipy.sparse.coo_array(y)):
        np.testing.assert_array_equal(kinds(hashes_of(X, sparse)), kinds(hashes_of(X, y)))


@pytest.mark.parametrize(("n", "n_numbers"), [(9, 1), (10, 10)])
def test_many_equal_rows_have_a_number_each(n: int, n_numbers: int) -> None:
    table, y = np.repeat([[1.0, 2.0], [1.0, 3.0]], [n, 3], axis=0), np.ones(n + 3)
    hashes = hashes_of(table, y)
    assert len(np.unique(hashes[:n])) == n_numbers
    assert len(np.unique(hashes[n:])) == 1
    order = RNG.permutation(n + 3)
    assert sorted(hashes_of(table[order], y)) == sorted(hashes)
    # Rows of other weights are none that could take their place.
    weight = np.append(np.arange(1.0, n + 1), np.ones(3))
    weighted = row_hashes(matrix_of(table), y, weight, 1)
    again = row_hashes(matrix_of(table[order]), y, weight[order], 1)
    np.testing.assert_array_equal(again, weighted[order])
    np.testing.assert_array_equal(np.unique(weighted), np.unique(hashes))
    # Nor are there any where each cell has a weight.
    by_cell = row_hashes(matrix_of(table), y, np.ones((n + 3, 2)), 1)
    assert len(np.unique(by_cell[:n])) == 1


@pytest.mark.parametrize("cuts", [[0, 100], [30, 31], [0, 0], [200, 200]])
def test_shards_have_the_numbers_of_the_whole(cuts: list[int]) -> None:
    """But for those of many equal rows, which may change places."""
    matrix, edges = matrix_of(X), [0, *cuts, len(X)]
    whole = hashes_of(X, Y)
    assert max(np.unique(kinds(np.nan_to_num(np.column_stack([X, Y]), nan=9)), return_counts=True)[1]) < 10

    def hashed(exchange: Any) -> Any:
        rows = np.arange(edges[exchange.rank], edges[exchange.rank + 1], dtype=np.uint32)
        with summed_over(Collectives(exchange)):
            return row_hashes(matrix.take(rows, 1), Y[rows], None, 1)

    np.testing.assert_array_equal(np.concatenate(run_local(3, hashed)), whole)


@pytest.mark.parametrize("weighted", [False, True])
def test_shards_share_out_the_numbers_of_many_equal_rows(weighted: bool) -> None:
    table, y = np.repeat([[1.0], [2.0], [3.0]], [30, 12, 4], axis=0), np.arange(46) % 2.0
    weight = RNG.integers(1, 4, 46).astype(float) if weighted else None
    matrix, owner = matrix_of(table), RNG.integers(0, 3, 46)

    def hashed(exchange: Any) -> Any:
        rows = np.flatnonzero(owner == exchange.rank).astype(np.uint32)
        with summed_over(Collectives(exchange)):
            return rows, row_hashes(
                matrix.take(rows, 1), y[rows], None if weight is None else weight[rows], 1
            )

    parts = run_local(3, hashed)
    rows, found = (np.concatenate([part[i] for part in parts]) for i in range(2))
    whole = row_hashes(matrix, y, weight, 1)
    weights = np.ones(46) if weight is None else weight
    assert sorted(zip(weights[rows], found, strict=True)) == sorted(zip(weights, whole, strict=True))


@pytest.mark.parametrize("n_rows", [600, 2_400])
@pytest.mark.parametrize("n_kinds", [2, 12])
def test_a_table_of_few_kinds_of_rows_is_learnt(n_rows: int, n_kinds: int) -> None:
    """Were kinds held out as wholes, no round would make a row better that is held out."""
    rng = np.random.default_rng(n_kinds)
    kind = rng.integers(0, n_kinds, n_rows)
    level = np.linspace(-1, 1, n_kinds)[rng.permutation(n_kinds)]
    table, y = kind[:, np.newaxis].astype(float), level[kind] + 0.3 * rng.normal(size=n_rows)
    every = np.arange(n_kinds, dtype=float)[:, np.newaxis]
    model = PolyleafRegressor(n_jobs=1).fit(table, y)
    assert np.abs(model.predict(every) - level).max() < 0.25
    labels = (rng.random(n_rows) < np.where(level > 0, 0.9, 0.1)[kind]).astype(int)
    classes = PolyleafClassifier(n_jobs=1).fit(table, labels)
    assert np.abs(classes.predict_proba(every)[:, 1] - np.where(level > 0, 0.9, 0.1)).max() < 0.2


def test_groups_keep_kinds_together() -> None:
    kind = np.arange(600) % 12
    y = np.random.default_rng(0).normal(size=12)[kind]
    held = PolyleafRegressor(n_jobs=1).fit(kind[:, np.newaxis], y, groups=kind)
    free = PolyleafRegressor(n_jobs=1).fit(kind[:, np.newaxis], y + 0.01 * np.arange(600))
    assert held.n_estimators_ < 20 < free.n_estimators_
