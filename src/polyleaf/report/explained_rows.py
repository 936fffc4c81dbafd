"""Shapley values of single rows: some drawn for a swarm of points, and those that are worst."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.report.embedded import coded
from polyleaf.report.subject import Places, Subject

N_IN_SWARM = 8  # features
OUTPUTS_TOGETHER = 64
_TOP = 6
# Values that are held together.
_BLOCK_CELLS = 1 << 23
_FLOAT64 = np.dtype(np.float64)


def shap_blocks(subject: Subject, n_outputs: int, n_rows: int) -> Iterator[range]:
    """Yield outputs that are explained together, so that values of so many rows fit into a block."""
    cells = max(1, subject.fitted.forest.n_features * n_rows)
    step = max(1, min(OUTPUTS_TOGETHER, _BLOCK_CELLS // cells))
    for begin in range(0, n_outputs, step):
        yield range(begin, min(begin + step, n_outputs))


def shap_of(subject: Subject, outputs: Places, rows: Places) -> tuple[FloatArray, FloatArray]:
    """Return values of shape (rows, features, outputs), and what they are added to."""
    shap = subject.shap(outputs)
    return shap.values(subject.rows(rows), _FLOAT64, subject.threads), shap.expected


def reasons(subject: Subject, row: int, values: FloatArray) -> list[list[Any]]:
    """Return the features that add most to a score of a row: feature, its value, what it adds."""
    first = np.argsort(-np.abs(values), kind="stable")[:_TOP]
    cells = subject.rows(np.array([row]))[0]
    return [[int(j), subject.cell(cells, int(j)), float(values[j])] for j in first if values[j] != 0]


def swarm(values: FloatArray, features: Sequence[int]) -> list[Any]:
    """Return Shapley values of rows for some features of an output, in bytes; all on one scale."""
    some = values[:, list(features)]
    return [list(features), coded(some.T.ravel())] if len(features) > 0 else []


def ranks(subject: Subject, rows: Places, features: Places) -> dict[int, Any]:
    """Return, for each feature, where values of rows are between its smallest and largest: ranks in bytes."""
    cells = subject.rows(rows)
    found = {}
    for feature in features.tolist():
        column = cells[:, feature].astype(np.float64)
        distinct, place = np.unique(column, return_inverse=True)
        last = max(1, int(np.isfinite(distinct).sum()) - 1)
        found[feature] = coded(np.where(np.isnan(column), np.nan, place / last))["bytes"]
    return found
