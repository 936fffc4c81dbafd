"""How rows lie in memory changes no bit of a tree: few channels or many, tiles of eight features or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from growing import settings, task
from polyleaf import _core
from polyleaf.data.binning import bin_table
from polyleaf.growth.dense import DenseGrower
from polyleaf.growth.sampling import FeatureSample
from polyleaf.growth.tree import Tree

pytestmark = pytest.mark.cpu_only("it is the rows of the core")

N_ROWS = 3000


def drawn(n_features: int, n_outputs: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Numbers of which each column has 255 bins, gradients that depend on them, and Hessians."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, n_features))
    X[rng.random(X.shape) < 0.02] = np.nan
    known = np.nan_to_num(X)
    signal = known @ rng.normal(size=(n_features, n_outputs)) + known[:, :1] * known[:, 1:2]
    gradient = (signal + rng.normal(size=signal.shape)).astype(np.float32)
    return X, gradient, rng.uniform(0.5, 2, size=gradient.shape).astype(np.float32)


def grown(X: Any, gradient: Any, hessian: Any, weight: Any, features: FeatureSample, **more: Any) -> Tree:
    matrix = bin_table(X, weight, 255, 1, None)
    of_grower = settings(max_depth=7, min_samples_leaf=3, n_threads=more.pop("n_threads", 1))
    return DenseGrower(matrix, of_grower).grow(task(gradient, hessian, weight, features=features, **more))


def assert_same_splits(one: Tree, other: Tree) -> None:
    for name in ("feature", "threshold", "missing_left", "left", "count", "cover"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
@pytest.mark.parametrize("n_features", [7, 8, 9, 16, 17])
@pytest.mark.parametrize("n_outputs", [1, 3, 12])
def test_tiles_of_eight_features(n_features: int, n_outputs: int, isa: str) -> None:
    """A mask of all features visits them by their places, whatever their number."""
    X, gradient, hessian = drawn(n_features, n_outputs)
    before = _core.kernels()
    if not _core.select_kernels(isa):
        pytest.skip(f"this processor has no {isa}")
    try:
        plain = grown(X, gradient, hessian, None, FeatureSample())
        masked = grown(X, gradient, hessian, None, FeatureSample(np.ones(n_features, dtype=np.uint8)))
    finally:
        _core.select_kernels(before)
    assert len(plain.feature) > 50
    assert_same_splits(plain, masked)
    np.testing.assert_array_equal(plain.values, masked.values)


@pytest.mark.parametrize("n_outputs", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["counted", "weighted", "diagonal", "weighted diagonal"])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_few_channels_are_as_many(n_outputs: int, kind: str, n_threads: int) -> None:
    """Outputs without a gradient and without a share take room in each row, and nothing else."""
    X, gradient, hessian = drawn(9, n_outputs, seed=n_outputs)
    weight = np.random.default_rng(1).uniform(0.1, 3, N_ROWS) if "weighted" in kind else None
    own = hessian if "diagonal" in kind else None
    silent = 9
    wide = np.hstack([gradient, np.zeros((N_ROWS, silent), dtype=np.float32)])
    wide_own = None if own is None else np.hstack([own, np.ones((N_ROWS, silent), dtype=np.float32)])
    shares = np.concatenate([np.ones(n_outputs), np.zeros(silent)])
    few = grown(X, gradient, own, weight, FeatureSample(), n_threads=n_threads)
    many = grown(X, wide, wide_own, weight, FeatureSample(), gain_weight=shares, n_threads=n_threads)
    assert len(few.feature) > 50
    assert_same_splits(few, many)
    np.testing.assert_array_equal(few.values, many.values[:, :n_outputs])
