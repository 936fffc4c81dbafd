"""Mixtures of the gradients of labels, and leaves that hold labels, as the core makes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from polyleaf import _core
from polyleaf.growth.label_sparse import SparseLabels

N_ROWS, N_LABELS = 40, 30
RNG = np.random.default_rng(0)
Y = scipy.sparse.csr_array((RNG.random((N_ROWS, N_LABELS)) < 0.2).astype(np.int8))
RULE = _core.LabelLeafRule(5, 1.0, 0.0, 0.5)


def labels() -> SparseLabels:
    """Return the labels with scores of some, above and below 0."""
    given = SparseLabels(Y.indptr, Y.indices, N_LABELS)
    values = np.linspace(-0.5, 1.5, 6, dtype=np.float32)
    given.add(np.zeros(N_ROWS, np.int64), values, np.array([0, 1, 4, 5, 9, 29], np.int32), 6, 1)
    return given


def gradients() -> Any:
    score = np.zeros(N_LABELS)
    score[[0, 1, 4, 5, 9, 29]] = np.linspace(-0.5, 1.5, 6, dtype=np.float32)
    return np.where(Y.toarray() == 1, -np.maximum(1 - score, 0), np.maximum(score, 0)).astype(np.float32)


@pytest.mark.parametrize("n_groups", [1, 7, 50])
def test_mixtures_are_signed_sums_over_groups(n_groups: int) -> None:
    group = RNG.integers(0, n_groups, N_LABELS).astype(np.int32)
    coefficient = RNG.normal(size=N_LABELS)
    matrix = np.zeros((N_LABELS, n_groups))
    matrix[np.arange(N_LABELS), group] = coefficient
    for n_threads in (1, 3):
        mixtures = np.empty((N_ROWS, n_groups), dtype=np.float32)
        _core.mix_label_gradients(labels().core, group, coefficient, mixtures, n_threads)
        np.testing.assert_allclose(mixtures, gradients() @ matrix, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("group", "coefficient", "n_rows", "words"),
    [
        (np.zeros(N_LABELS), np.ones(N_LABELS), N_ROWS - 1, "one row for each"),
        (np.zeros(N_LABELS - 1), np.ones(N_LABELS), N_ROWS, "for each label"),
        (np.zeros(N_LABELS), np.ones(N_LABELS + 1), N_ROWS, "for each label"),
        (np.full(N_LABELS, 2), np.ones(N_LABELS), N_ROWS, "group is out of range"),
        (np.full(N_LABELS, -1), np.ones(N_LABELS), N_ROWS, "group is out of range"),
    ],
)
def test_a_hash_that_does_not_fit_is_refused(group: Any, coefficient: Any, n_rows: int, words: str) -> None:
    mixtures = np.empty((n_rows, 2), dtype=np.float32)
    with pytest.raises(ValueError, match=words):
        _core.mix_label_gradients(labels().core, group.astype(np.int32), coefficient, mixtures, 1)


def filled(**changes: Any) -> Any:
    given = {
        "labels": labels().core,
        "leaf_of_row": (np.arange(N_ROWS) % 3).astype(np.uint32),
        "n_leaves": 3,
        "rows": None,
        "weight": None,
        "rule": RULE,
        "n_threads": 1,
    }
    return _core.fill_label_leaves(**{**given, **changes})


def test_leaves_come_from_the_rows_of_the_sample() -> None:
    rows = np.arange(5, N_ROWS, 2, dtype=np.uint32)
    values, outputs = filled(rows=rows)
    gradient = gradients().astype(float)
    for leaf in range(3):
        own = rows[rows % 3 == leaf]
        total = gradient[own].sum(axis=0)
        kept = np.sort(np.argsort(-np.abs(total), kind="stable")[:5])
        np.testing.assert_array_equal(outputs[leaf], kept)
        np.testing.assert_allclose(values[leaf], -0.5 * total[kept] / (len(own) + 1), rtol=1e-6)


def test_a_leaf_without_rows_says_nothing() -> None:
    values, outputs = filled(n_leaves=4)
    assert not values[3].any()
    np.testing.assert_array_equal(outputs[3], np.arange(5))


def test_weights_that_differ_widely_are_summed_plainly() -> None:
    weight = np.ones(N_ROWS)
    weight[0] = 2.0**40
    values, outputs = filled(weight=weight)
    for leaf in (1, 2):  # of light rows
        alone, labels_alone = filled()
        np.testing.assert_array_equal(outputs[leaf], labels_alone[leaf])
        np.testing.assert_allclose(values[leaf], alone[leaf], rtol=1e-6)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"leaf_of_row": np.zeros(N_ROWS - 1, np.uint32)}, "one for each row"),
        ({"leaf_of_row": np.full(N_ROWS, 3, np.uint32)}, "leaf is out of range"),
        ({"rows": np.array([N_ROWS], np.uint32)}, "row is out of range"),
        ({"weight": np.ones(N_ROWS + 1)}, "one for each row"),
    ],
)
def test_rows_that_do_not_fit_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        filled(**changes)
