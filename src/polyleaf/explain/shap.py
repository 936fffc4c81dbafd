"""Shapley values of a forest: what each feature adds to each raw score of a row."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf import _core
from polyleaf.data.binned_rows import BinnedRows
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.memory import available, in_words
from polyleaf.data.sparse_formats import SparseTable
from polyleaf.data.sparse_tables import DenseRows
from polyleaf.model.forest import Forest
from polyleaf.model.forest_checks import LAYOUT

# Cells of a binned table that become numbers together.
_BLOCK_CELLS = 1 << 22


class ForestShap:
    """Path-dependent Shapley values of the first rounds of a forest.

    What a tree predicts where only some features are known is the mean over the leaves that a row can reach,
    weighted by the cover of the training rows wherever the tree asks for another feature. The values are
    exact, and those of a row do not depend on other rows or on the number of threads.

    Parameters
    ----------
    forest : Forest
        The trees.
    n_rounds : int
        Rounds that count.
    outputs : ndarray of int
        Which outputs, in the order in which they are wanted.
    """

    def __init__(self, forest: Forest, n_rounds: int, outputs: npt.NDArray[np.intp]) -> None:
        self._forest = forest
        self._outputs = outputs
        order = np.argsort(outputs)
        # Where each output, in ascending order, is wanted.
        self._columns = order.astype(np.int32)
        self._unit = np.ascontiguousarray(forest.unit[outputs[order]])
        arrays = {name: getattr(forest, name) for name in LAYOUT if name != "shape"}
        self._core = _core.ForestExplainer(
            arrays, forest.trees_up_to(n_rounds), outputs[order].astype(np.int32)
        )

    @cached_property
    def expected(self) -> FloatArray:
        """Raw scores that values of rows are added to, float64 of shape (outputs,)."""
        added = np.empty(len(self._outputs))
        added[self._columns] = self._core.expected * self._unit
        return self._forest.base_score[self._outputs] + added

    def values(
        self, table: Array | SparseTable | BinnedRows, dtype: np.dtype[Any], n_threads: int
    ) -> npt.NDArray[Any]:
        """Return the values of all rows, of shape (rows, features, outputs).

        Raises
        ------
        MemoryError
            When they take more than there is; before any work is done.
        """
        shape = (table.shape[0], self._forest.n_features, len(self._outputs))
        result = int(np.prod([*shape, dtype.itemsize], dtype=object))
        sizes = f"{shape[0]:,} rows x {shape[1]:,} features x {shape[2]:,} outputs of {dtype.name}"
        self._refuse_too_large(result, n_threads, sizes)
        out = np.zeros(shape, dtype)
        for rows, block, columns in self._blocks(table, n_threads):
            self._core.write(block, columns, self._columns, self._unit, out[rows], n_threads)
        return out

    def absolute_sums(self, table: Array | SparseTable | BinnedRows, n_threads: int) -> FloatArray:
        """Return the absolute values summed over the rows, float64 of shape (features, outputs).

        Raises
        ------
        MemoryError
            When that takes more than there is; before any work is done.
        """
        shape = (self._forest.n_features, len(self._outputs))
        needed = 8 * shape[0] * shape[1] + self._core.bytes_of_sums(table.shape[0])
        self._refuse_too_large(needed, n_threads, f"{shape[0]:,} features x {shape[1]:,} outputs")
        sums = np.zeros(shape)
        for _, block, columns in self._blocks(table, n_threads):
            self._core.add_abs(block, columns, self._columns, self._unit, sums, n_threads)
        return sums

    def _refuse_too_large(self, result: int, n_threads: int, sizes: str) -> None:
        needed = result + n_threads * self._core.bytes_of_thread
        free = available()
        if free is not None and needed > free:
            raise MemoryError(
                f"shap_values takes {in_words(needed)} ({sizes}: {in_words(result)}; {n_threads} threads: "
                f"{in_words(needed - result)}), and {in_words(free)} are available. Fewer rows or outputs, "
                'dtype="float32" or reduce="mean_abs" take less.'
            )

    def _blocks(
        self, table: Array | SparseTable | BinnedRows, n_threads: int
    ) -> Iterator[tuple[slice, Array, npt.NDArray[np.int32]]]:
        """Yield rows as numbers: which ones, their numbers, and the column of each feature that is used."""
        used = self._core.features
        if isinstance(table, np.ndarray):
            yield slice(0, table.shape[0]), table, used
            return
        if len(used) == 0:  # all values are 0
            return
        columns = np.arange(len(used), dtype=np.int32)
        if not isinstance(table, BinnedRows):
            for rows, block in DenseRows(table, used):
                yield rows, block, columns
            return
        step = max(1, _BLOCK_CELLS // len(used))
        for begin in range(0, table.shape[0], step):
            end = min(begin + step, table.shape[0])
            block = _core.values_of_bins(table.matrix, used, begin, end, n_threads)
            yield slice(begin, end), block, columns
