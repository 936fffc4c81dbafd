"""Histograms of rows that are sorted by their bins first: the tree is that of rows as they come.

Rows are sorted where they have many channels. Outputs whose gradients are 0 bring channels, and nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from growing import settings, task
from polyleaf import _core
from polyleaf.data.binning import bin_table
from polyleaf.growth.dense import DenseGrower
from polyleaf.growth.sampling import FeatureSample

pytestmark = pytest.mark.cpu_only("looks at the growers of the CPU")

N_OUTPUTS, N_SILENT = 60, 30  # 128 channels with a Hessian of each, padding included, and 192
STRUCTURE = ("feature", "bin", "left", "missing_left", "cover")


@pytest.fixture(params=["baseline", "avx2", "avx512"])
def kernels(request: pytest.FixtureRequest) -> Any:
    before = _core.kernels()
    if not _core.select_kernels(request.param):
        pytest.skip(f"this processor does not have {request.param}")
    yield
    assert _core.select_kernels(before)


def grown(matrix: Any, gradient: Any, hessian: Any, leaves_of: Any, **changes: Any) -> Any:
    rest = {key: changes.pop(key) for key in ("weight", "features") if key in changes}
    grower = DenseGrower(matrix, settings(**changes))
    for _ in range(2):  # in the memory of the tree before, too
        tree = grower.grow(task(gradient, hessian, leaf_of_row=leaves_of, **rest))
    return tree


def check(X: Any, max_bins: int, seed: int = 0, **changes: Any) -> None:
    rng = np.random.default_rng(seed)
    n = len(X)
    known = np.nan_to_num(X)
    of_first = known[:, :1] * rng.normal(size=N_OUTPUTS)
    gradient = (rng.normal(size=(n, N_OUTPUTS)) + of_first).astype(np.float32)
    hessian = (rng.random((n, N_OUTPUTS)) + 0.1).astype(np.float32)
    matrix = bin_table(X, None, max_bins, 1)
    leaves = [np.zeros(n, dtype=np.uint32) for _ in range(2)]
    # min_split_gain is of the mean over the outputs: 0 is the same for any number of them.
    few = grown(matrix, gradient, hessian, leaves[0], **changes)
    silent = np.zeros((n, N_SILENT), dtype=np.float32)
    many = grown(
        matrix,
        np.hstack([gradient, silent]),
        np.hstack([hessian, silent + np.float32(0.5)]),
        leaves[1],
        **changes,
    )
    assert len(few.feature) > 1
    for name in STRUCTURE:
        np.testing.assert_array_equal(getattr(many, name), getattr(few, name), err_msg=name, strict=True)
    np.testing.assert_allclose(many.gain, few.gain, rtol=1e-9)  # outputs are summed in other tiles
    np.testing.assert_array_equal(many.values[:, :N_OUTPUTS], few.values)
    assert not many.values[:, N_OUTPUTS:].any()
    np.testing.assert_array_equal(*leaves)


def table(n: int, m: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).normal(size=(n, m)).astype(np.float32)


# Bins of a feature: a few, as many as a chunk of rows is worth sorting by, and one more; rows: fewer than
# four for each bin, some chunks and a bit.
@pytest.mark.parametrize("max_bins", [4, 33, 128, 129])
@pytest.mark.parametrize("n_rows", [100, 600, 2048, 2049, 5000])
def test_rows_and_bins(kernels: None, max_bins: int, n_rows: int) -> None:
    check(table(n_rows, 20), max_bins, max_depth=4, min_samples_leaf=5)


@pytest.mark.parametrize(
    "changes",
    [
        {"max_leaves": 9, "max_depth": None},
        {"n_threads": 3},
        {"histogram_bytes": 0},
        {"reg_alpha": 0.3},
        {"weight": np.random.default_rng(5).uniform(0.5, 2, 3000)},
        {"features": FeatureSample(mask=np.array([1, 0, 0, 1, 1] * 6, dtype=np.uint8))},
        {"features": FeatureSample(node_share=0.5, key=3)},
    ],
    ids=str,
)
def test_settings(changes: dict[str, Any]) -> None:
    check(table(3000, 30), 40, **{"max_depth": 5, "min_samples_leaf": 5} | changes)


@pytest.mark.parametrize("kind", ["gaps", "frequent", "few values", "more values than a byte"])
def test_tables(kind: str) -> None:
    X = table(4000, 24)
    rng = np.random.default_rng(2)
    if kind == "gaps":
        X[rng.random(X.shape) < 0.2] = np.nan
    elif kind == "frequent":
        X[rng.random(X.shape) < 0.5] = 0
    elif kind == "few values":
        X = X.round()
    check(X, 1000 if kind == "more values than a byte" else 60, max_depth=5, min_samples_leaf=5)


def test_more_cells_than_are_sorted_at_a_time() -> None:
    check(table(70_000, 62), 33, max_depth=2)


def check_pieces(X: Any, max_bins: int, n_threads: int, n_outputs: int = 90, **changes: Any) -> None:
    """Threads that build histograms in pieces grow the tree of one thread, which builds them as a whole."""
    rng = np.random.default_rng(7)
    gradient = (rng.normal(size=(len(X), n_outputs)) + np.nan_to_num(X)[:, :1]).astype(np.float32)
    hessian = (rng.random((len(X), n_outputs)) + 0.1).astype(np.float32)
    matrix = bin_table(X, None, max_bins, 1)
    leaves = [np.zeros(len(X), dtype=np.uint32) for _ in range(2)]
    alone = grown(matrix, gradient, hessian, leaves[0], n_threads=1, **changes)
    together = grown(matrix, gradient, hessian, leaves[1], n_threads=n_threads, **changes)
    assert len(alone.feature) > 1
    for name in (*STRUCTURE, "gain", "values"):
        np.testing.assert_array_equal(
            getattr(together, name), getattr(alone, name), err_msg=name, strict=True
        )
    np.testing.assert_array_equal(*leaves)


# Parts of less than a chunk, of one and of several; one part, where rows are few for their bins; more bins
# than are sorted. 18 outputs have too few channels to be sorted for.
@pytest.mark.parametrize("n_threads", [2, 4, 8, 16])
@pytest.mark.parametrize(
    ("n_rows", "max_bins", "n_outputs"),
    [(300, 33, 90), (5000, 33, 90), (5001, 128, 90), (5001, 129, 90), (20_003, 24, 90), (5000, 33, 18)],
)
def test_pieces(kernels: None, n_threads: int, n_rows: int, max_bins: int, n_outputs: int) -> None:
    check_pieces(
        table(n_rows, 70), max_bins, n_threads, n_outputs, max_depth=3, min_samples_leaf=5, max_leaves=None
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"max_leaves": 9, "max_depth": None},
        {"histogram_bytes": 0},
        {"histogram_bytes": 8 << 20},  # two or three histograms
        {"features": FeatureSample(mask=np.array([1, 0, 0, 1, 1] * 14, dtype=np.uint8))},
        {"features": FeatureSample(node_share=0.5, key=3)},
    ],
    ids=str,
)
def test_settings_of_pieces(changes: dict[str, Any]) -> None:
    check_pieces(table(6000, 70), 40, 8, **{"max_depth": 5, "min_samples_leaf": 5} | changes)


@pytest.mark.parametrize("kind", ["gaps", "some frequent", "some of more values than a byte"])
def test_tables_in_pieces(kind: str) -> None:
    X = table(6000, 70)
    rng = np.random.default_rng(2)
    if kind == "gaps":
        X[rng.random(X.shape) < 0.2] = np.nan
    elif kind == "some frequent":
        X[:, ::2][rng.random((6000, 35)) < 0.5] = 0
    else:
        X[:, ::2] = X[:, ::2].round()  # the others have 1,000 bins
    check_pieces(X, 1000 if kind.endswith("byte") else 60, 8, max_depth=4, min_samples_leaf=5)


# 2^23 cells are 125,203 rows of 67 features.
@pytest.mark.parametrize("n_rows", [125_203, 125_204])
def test_more_cells_than_are_sorted_for_pieces(n_rows: int) -> None:
    check_pieces(table(n_rows, 67), 24, 4, max_depth=1)
