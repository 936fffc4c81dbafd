"""The grower for sparse labels (GBDT-sparse): thousands of outputs, a few per row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf import _core
from polyleaf.growth.contract import Task
from polyleaf.growth.core_task import core_task
from polyleaf.growth.tree import Tree


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

    def add_tree(self, leaf_of_row: npt.NDArray[np.uint32], tree: Tree, n_threads: int) -> None:
        """Add a tree that was just grown, with the leaf of each row, to the scores."""
        width = tree.values.shape[1]
        begin = leaf_of_row.astype(np.int64) * width
        self.add(begin, tree.values.ravel(), tree.outputs.ravel(), width, n_threads)


class LabelSparseGrower:
    """Grows trees on one binned table, from the gradients of labels at their present scores.

    Parameters
    ----------
    matrix : BinnedMatrix
        The table.
    labels : SparseLabels
        Its trees are not added to their scores here.
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
