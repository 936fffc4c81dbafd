"""Threads that grow a tree together, by nodes, tiles and parts of rows: the tree is that of one thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from growing import settings, task
from polyleaf.data.binning import bin_table
from polyleaf.growth.dense import DenseGrower
from polyleaf.growth.sampling import FeatureSample

pytestmark = pytest.mark.cpu_only("looks at the growers of the CPU")

ARRAYS = ("feature", "bin", "left", "missing_left", "gain", "cover", "values")


def columns(kind: str, rng: np.random.Generator, n_rows: int, n_features: int) -> Any:
    """A table whose histograms are built in one of the ways there are."""
    X = rng.normal(size=(n_rows, n_features))
    if kind == "frequent":  # most cells are in one bin, which is not visited
        X[rng.random(X.shape) < 0.8] = 0.0
    if kind == "combined":  # neighbours of few bins are summed as one
        X = np.floor(2 * X)
    if kind == "missing":
        X[rng.random(X.shape) < 0.1] = np.nan
    if kind == "categories":
        X[:, ::2] = rng.integers(0, 30, size=X[:, ::2].shape)
    return X


def grown(
    X: Any, gradient: Any, n_threads: int, *, categorical: Any = None, mask: Any = None, **changes: Any
) -> dict[str, Any]:
    """The arrays of a tree, grown in the memory of one before; the leaf of each row."""
    matrix = bin_table(X, None, 64, n_threads, categorical)
    hessian = np.abs(gradient) + np.float32(0.5)
    leaf_of_row = np.zeros(len(X), dtype=np.uint32)
    grower = DenseGrower(matrix, settings(n_threads=n_threads, **changes))
    rest = {} if mask is None else {"features": FeatureSample(mask=mask)}
    for _ in range(2):
        tree = grower.grow(task(gradient, hessian, leaf_of_row=leaf_of_row, **rest))
    return {name: getattr(tree, name) for name in ARRAYS} | {"leaf_of_row": leaf_of_row}


@pytest.mark.parametrize("kind", ["plain", "frequent", "combined", "missing", "categories"])
@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_outputs"),
    [
        (2_000, 5, 3),  # one thread does it
        (30_000, 5, 3),  # one tile of features, in parts of the rows
        (20_000, 9, 40),  # and of outputs
        (9_000, 150, 2),  # more tiles of features
    ],
)
def test_threads_change_no_bit(kind: str, n_rows: int, n_features: int, n_outputs: int) -> None:
    rng = np.random.default_rng(n_rows)
    X = columns(kind, rng, n_rows, n_features)
    gradient = (rng.normal(size=(n_rows, n_outputs)) + np.nan_to_num(X[:, :1])).astype(np.float32)
    categorical = None
    if kind == "categories":
        categorical = (np.arange(n_features) % 2 == 0).astype(np.uint8)
    for changes in (
        {"max_depth": 6},
        {"max_depth": 12, "max_leaves": 50, "min_samples_leaf": 1},
        {"max_depth": 5, "histogram_bytes": 0},  # none is kept
        {"max_depth": 6, "histogram_bytes": 1 << 19},  # few are
        {"max_depth": 5, "histogram_precision": "packed"},
        {"max_depth": 4, "sparse_leaves": 2},
    ):
        alone = grown(X, gradient, 1, categorical=categorical, **changes)
        for n_threads in (2, 8):
            together = grown(X, gradient, n_threads, categorical=categorical, **changes)
            for name, array in alone.items():
                np.testing.assert_array_equal(array, together[name], err_msg=f"{name}, {changes}")


def test_some_features_of_a_tree() -> None:
    """Tiles without a feature of the tree are left out, in pieces too."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 130))
    gradient = (X[:, :20] + rng.normal(size=(20_000, 20))).astype(np.float32)
    mask = np.zeros(130, dtype=np.uint8)
    mask[[3, 4, 90]] = 1
    alone, together = (grown(X, gradient, n, mask=mask, max_depth=5) for n in (1, 8))
    assert set(alone["feature"][alone["left"] >= 0]) <= {3, 4, 90}
    for name, array in alone.items():
        np.testing.assert_array_equal(array, together[name], err_msg=name)
