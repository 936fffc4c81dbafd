"""Raw scores of rows that are not trained on, round by round."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from polyleaf.data.binned_rows import BinnedRows
from polyleaf.data.inputs import FloatArray
from polyleaf.model.forest import Forest


class Scores(Protocol):
    """Raw scores of the rows of a table, to which rounds are added."""

    def add_round(self, forest: Forest, number: int) -> FloatArray:
        """Add the trees of one round; return the scores in units, which nobody may change."""


class HostScores:
    """Scores that the CPU computes.

    Parameters
    ----------
    table : table
        As `Forest.add_round_to` takes it; read in place.
    start : float64 ndarray of shape (outputs,)
        Scores before the first round, in units.
    n_threads : int
        Affects the time only.
    """

    def __init__(self, table: Any, start: FloatArray, n_threads: int) -> None:
        self._table = table
        self._scores = np.tile(start, (table.shape[0], 1))
        self._n_threads = n_threads

    def add_round(self, forest: Forest, number: int) -> FloatArray:
        """Add the trees of one round."""
        forest.add_round_to(self._table, number, self._scores, self._n_threads)
        return self._scores


def check_cut_points(forest: Forest, rows: BinnedRows, opening: str, advice: str = "") -> None:
    """Raise ValueError unless a forest splits at cut points of a table alone.

    Parameters
    ----------
    forest : Forest
        The trees.
    rows : BinnedRows
        Of the table.
    opening, advice : str
        What the error begins and ends with.
    """
    try:
        forest.predict_raw(rows.take(np.empty(0, dtype=np.uint32)))
    except ValueError as error:
        raise ValueError(f"{opening}{error}{advice}.") from error
