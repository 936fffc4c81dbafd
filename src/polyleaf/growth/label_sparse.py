"""The grower for sparse labels (GBDT-sparse): thousands of outputs, a few per row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from polyleaf import _core
from polyleaf.growth.contract import Destination, Task
from polyleaf.growth.core_task import core_task
from polyleaf.growth.tree import Tree

if TYPE_CHECKING:
    # SciPy's classes take parameters in newer versions only.
    CsrArray = scipy.sparse.csr_array[Any, tuple[int, int]]


class SparseLabels:
    """Labels, and the scores of a growing forest, in compressed rows.

    Parameters
    ----------
    row_begin, label : ndarray
        As ``indptr`` and ``indices`` of a CSR matrix with ascending columns.
    n_outputs : int
        Number of labels.
    """

    def __init__(self, row_begin: npt.NDArray[Any], label: npt.NDArray[Any], n_outputs: int) -> None:
        self.core = _core.SparseLabels(row_begin.astype(np.int64), label.astype(np.int32), n_outputs)
        self._n_outputs = n_outputs

    @classmethod
    def of_rows(cls, n_rows: int, n_outputs: int) -> SparseLabels:
        """Return rows that have no label, and no score yet."""
        return cls(np.zeros(n_rows + 1, dtype=np.int64), np.empty(0, dtype=np.int32), n_outputs)

    def add(
        self,
        value_begin: npt.NDArray[np.int64],
        values: npt.NDArray[np.float32],
        value_output: npt.NDArray[np.int32],
        width: int,
        n_threads: int,
    ) -> None:
        """Add a tree to the scores.

        Parameters
        ----------
        value_begin : int64 ndarray of shape (rows,)
            Where the values of each row's leaf begin.
        values, value_output : ndarray
            Values, and the outputs they belong to, as in :class:`polyleaf.model.forest.Forest`.
        width : int
            Values of a leaf.
        n_threads : int
            Number of threads.
        """
        self.core.add(value_begin, values, value_output, width, n_threads)

    def scores(self) -> CsrArray:
        """Return the scores that are not 0."""
        row_begin, output, score = self.core.scores()
        shape = (len(row_begin) - 1, self._n_outputs)
        return scipy.sparse.csr_array((score, output, row_begin), shape=shape)


class LabelScorePass:
    """The score pass of sparse labels: their scores live in the core, where the grower finds them.

    Parameters
    ----------
    labels : SparseLabels
        With the scores at the start.
    n_rows, n_threads : int
        Rows of the labels; threads affect the time only.
    """

    def __init__(self, labels: SparseLabels, n_rows: int, n_threads: int) -> None:
        self._labels = labels
        self._leaf_of_row = np.empty(n_rows, dtype=np.uint32)
        self._n_threads = n_threads

    def gradients(self, number: int) -> None:
        """Return None: the grower makes them of labels and scores."""
        return

    def destination(self, outputs: slice) -> Destination:
        """Return the leaf of each row, to be filled."""
        return Destination(leaf_of_row=self._leaf_of_row)

    def add(self, tree: Tree) -> None:
        """Add a tree that was grown with such a destination to the scores."""
        width = tree.values.shape[1]
        begin = self._leaf_of_row.astype(np.int64) * width
        self._labels.add(begin, tree.values.ravel(), tree.outputs.ravel(), width, self._n_threads)

    def scores(self) -> None:
        """Return None: they would be dense."""
        return


class LabelSparseGrower:
    """Grows trees on one binned table, from the gradients of labels at their present scores.

    Parameters
    ----------
    matrix : BinnedMatrix
        The table.
    labels : SparseLabels
        Trees are added to their scores by a `LabelScorePass`.
    settings : GrowSettings
        The same for every tree.
    """

    def __init__(
        self, matrix: _core.BinnedMatrix, labels: SparseLabels, settings: _core.GrowSettings
    ) -> None:
        self._matrix = matrix
        self._settings = settings
        self._core = _core.LabelSparseGrower(labels.core)

    def grow(self, task: Task) -> Tree:
        """Return the tree of a task that has no gradients."""
        return Tree(**self._core.grow(core_task(self._matrix, task), self._settings))
