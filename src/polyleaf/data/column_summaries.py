"""The distinct values of columns: what cut points follow from, of tables that are never in one place.

Summaries of parts of the rows are merged, and give the very cut points of all rows together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from polyleaf import _core
from polyleaf.data.inputs import Array, FloatArray

Units = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ColumnSummary:
    """What some rows hold in a column.

    Attributes
    ----------
    values : float64 ndarray
        Distinct, ascending.
    weights : int64 ndarray
        Of each: that of its rows as whole numbers, or how many they are.
    has_missing : bool
        Whether any value is missing.
    """

    values: FloatArray
    weights: Units
    has_missing: bool

    @classmethod
    def merged(cls, parts: Sequence[ColumnSummary]) -> ColumnSummary:
        """Return what the rows of all parts hold; there is at least one."""
        values = np.concatenate([part.values for part in parts])
        weights = np.concatenate([part.weights for part in parts])
        order = np.argsort(values, kind="stable")
        values, weights = values[order], weights[order]
        first = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]])) if len(values) else order
        sums = np.add.reduceat(weights, first) if len(first) else weights
        return cls(values[first], sums, any(part.has_missing for part in parts))


def summarise_columns(X: Array, units: Units | None, n_threads: int) -> list[ColumnSummary]:
    """Return what the rows of a table hold, column by column.

    Parameters
    ----------
    X : ndarray of shape (rows, features)
        bool, integer, float32 or float64; NaN is missing; no infinities. It may have no rows.
    units : int64 ndarray of shape (rows,) or None
        Weights of the rows, from ``_core.weight_units`` with the total of all parts. None: each weighs 1.
    n_threads : int
        Number of threads.
    """
    return [ColumnSummary(*column) for column in _core.summarise_columns(X, units, n_threads)]


def table_of_summaries(
    columns: Sequence[ColumnSummary],
    max_bins: int | None,
    categorical: npt.NDArray[np.uint8] | None = None,
) -> _core.BinnedMatrix:
    """Return a table of no rows with the cut points that `bin_table` would choose for all rows together."""
    cuts, categories = [], []
    for number, column in enumerate(columns):
        is_categorical = categorical is not None and bool(categorical[number])
        found = _core.cuts_of_values(column.values, column.weights, max_bins, is_categorical, number)
        cuts.append(found[0])
        categories.append(found[1] if is_categorical else None)
    has_missing = np.array([column.has_missing for column in columns], dtype=np.uint8)
    return _core.table_of_cuts(cuts, has_missing, categories)


def laid_out(table: _core.BinnedMatrix, counts: Units, n_rows: int, n_threads: int) -> _core.BinnedMatrix:
    """Return a table of no rows, laid out as one of which a sample of rows is known.

    The layout affects speed only. Parts of a table that are binned by ``bin_like`` of one such table have the
    same one, whichever rows they have.

    Parameters
    ----------
    table : BinnedMatrix
        From `table_of_summaries`.
    counts : int64 ndarray
        The sum of ``table.sample_counts`` of all parts.
    n_rows : int
        Of the largest part.
    n_threads : int
        That will grow trees on a part.
    """
    features = range(table.n_features)
    categorical = _core.parts_of_table(table)["categorical"]
    return _core.table_of_cuts(
        [table.cuts(feature) for feature in features],
        np.array([table.has_missing(feature) for feature in features], dtype=np.uint8),
        [table.categories(feature) if categorical[feature] else None for feature in features],
        counts,
        n_rows,
        n_threads,
    )
