"""Raw scores of rows that are not trained on, round by round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from polyleaf.data.binned_rows import BinnedRows
from polyleaf.data.inputs import FloatArray
from polyleaf.growth.label_sparse import SparseLabels
from polyleaf.growth.tree import GrownTree, Tree
from polyleaf.model.forest import Forest

if TYPE_CHECKING:
    from polyleaf.growth.label_sparse import CsrArray

Trees = Sequence[tuple[Tree, int]]  # each with the first output it adds to


class Scores(Protocol):
    """Raw scores of the rows of a table, to which rounds are added."""

    def add_round(self, forest: Forest, number: int) -> FloatArray | CsrArray:
        """Add the trees of one round; return the scores in units, which nobody may change."""

    def add_grown(self, trees: Trees, forest: Callable[[], Forest]) -> FloatArray | CsrArray:
        """Add trees that were just grown, each with its first output; `forest` makes the forest of them."""


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

    def add_grown(self, trees: Trees, forest: Callable[[], Forest]) -> FloatArray:
        """Add trees that were just grown."""
        table = self._table
        if not isinstance(table, np.ndarray | BinnedRows):
            return self.add_round(forest(), 0)
        if not all(isinstance(tree, GrownTree) for tree, _ in trees):
            return self.add_round(forest(), 0)
        for tree, output in trees:
            assert isinstance(tree, GrownTree)
            if isinstance(table, BinnedRows):
                tree.core.add_binned(table.matrix, output, self._scores, self._n_threads)
            else:
                tree.core.add(table, output, self._scores, self._n_threads)
        return self._scores


class LabelScores:
    """Scores of sparse labels, as compressed rows: leaves speak of a few labels, all others stay 0.

    Parameters
    ----------
    table : table
        As `Forest.add_round_to_sparse` takes it; read in place.
    n_outputs : int
        Number of labels.
    n_threads : int
        Affects the time only.
    """

    def __init__(self, table: Any, n_outputs: int, n_threads: int) -> None:
        self._table = table
        self._labels = SparseLabels.of_rows(table.shape[0], n_outputs)
        self._n_threads = n_threads

    def add_round(self, forest: Forest, number: int) -> CsrArray:
        """Add the trees of one round."""
        forest.add_round_to_sparse(self._table, number, self._labels, self._n_threads)
        return self._labels.scores()

    def add_grown(self, trees: Trees, forest: Callable[[], Forest]) -> CsrArray:
        """Add trees that were just grown."""
        return self.add_round(forest(), 0)


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
