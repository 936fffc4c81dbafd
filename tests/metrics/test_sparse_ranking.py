"""Rankings of scores in compressed rows are those of the dense ones, where few, many or all are stored."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from polyleaf.metrics import ndcg_at_k, precision_at_k, psp_at_k
from polyleaf.metrics.ranking import best_columns
from polyleaf.metrics.sparse_ranking import best_stored_columns

N_LABELS = 12


def scores(density: float) -> np.ndarray:
    """Return scores on a coarse grid, above and below 0: many are equal."""
    rng = np.random.default_rng(0)
    stored = rng.random((60, N_LABELS)) < density
    return np.where(stored, rng.integers(-2, 4, size=stored.shape) / 2, 0.0)


@pytest.mark.parametrize("density", [0.0, 0.2, 0.9])
@pytest.mark.parametrize("k", [1, 3, N_LABELS])
def test_best_columns_of_compressed_rows(density: float, k: int) -> None:
    score = scores(density)
    np.testing.assert_array_equal(
        best_stored_columns(scipy.sparse.csr_array(score), k), best_columns(score, k)
    )


def test_zeros_may_be_stored() -> None:
    rows = scipy.sparse.csr_array((np.array([0.0, 1.0, -1.0]), np.array([0, 2, 1]), np.array([0, 3])), (1, 5))
    np.testing.assert_array_equal(best_stored_columns(rows, 4), [[2, 0, 3, 4]])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [1, 3, N_LABELS])
def test_metrics_of_compressed_rows_are_those_of_dense_ones(k: int, weighted: bool) -> None:
    rng = np.random.default_rng(1)
    y, score = (rng.random((60, N_LABELS)) < 0.2).astype(np.int8), scores(0.5)
    assert (y.sum(axis=1) == 0).any()  # a row without a true label counts as well
    weight = rng.random(60) if weighted else None
    compressed = scipy.sparse.csr_array(y), scipy.sparse.csr_array(score)
    propensity = rng.uniform(0.1, 1, N_LABELS)
    for metric in (precision_at_k, ndcg_at_k):
        assert metric(*compressed, k, weight) == metric(y, score, k, weight)
    of_compressed = psp_at_k(*compressed, k, propensity, weight)
    assert of_compressed == psp_at_k(y, score, k, propensity, weight)
    assert psp_at_k(scipy.sparse.csr_array(y.shape, dtype=np.int8), compressed[1], k, propensity) == 0


def test_scores_may_be_booleans() -> None:
    y, score = scipy.sparse.csr_array(np.eye(3)), scipy.sparse.csr_array(np.eye(3, dtype=bool))
    assert precision_at_k(y, score, 1) == precision_at_k(y.toarray(), score.toarray(), 1) == 1
