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

# Cells of a binned table that become numbers together, or of pairs of features that are added up.
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
    interactions : bool, default=False
        Whether values are shared out to pairs of features: shapes have features twice.
    """

    def __init__(
        self, forest: Forest, n_rounds: int, outputs: npt.NDArray[np.intp], *, interactions: bool = False
    ) -> None:
        self._forest = forest
        self._interactions = interactions
        self._outputs = outputs
        order = np.argsort(outputs)
        # Where each output, in ascending order, is wanted.
        self._columns = order.astype(np.int32)
        self._unit = np.ascontiguousarray(forest.unit[outputs[order]])
        self._core = _explainer(forest, forest.trees_up_to(n_rounds), outputs[order].astype(np.int32))

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
        shape = (table.shape[0], *self._shape)
        self._refuse_too_large(shape, dtype, 0, n_threads)
        out = np.zeros(shape, dtype)
        for rows, block, columns in self._blocks(table, n_threads):
            self._write(block, columns, out[rows], n_threads)
        return out

    def absolute_sums(
        self, table: Array | SparseTable | BinnedRows, n_threads: int, weight: FloatArray | None = None
    ) -> FloatArray:
        """Return the absolute values summed over the rows, float64 of shape (features, outputs).

        With weights of the rows, each row counts so often.

        Raises
        ------
        MemoryError
            When that takes more than there is; before any work is done.
        """
        cells = int(np.prod(self._shape, dtype=object))
        step = max(1, _BLOCK_CELLS // cells)  # rows whose values are there together
        by_rows = self._interactions or weight is not None
        n_rows = table.shape[0]
        beside = 8 * min(step, n_rows) * cells if by_rows else self._core.bytes_of_sums(n_rows)
        self._refuse_too_large(self._shape, np.dtype(np.float64), beside, n_threads)
        sums = np.zeros(self._shape)
        for rows, block, columns in self._blocks(table, n_threads):
            if not by_rows:
                self._core.add_abs(block, columns, self._columns, self._unit, sums, n_threads)
                continue
            for begin in range(0, len(block), step):
                part = block[begin : begin + step]
                values = np.zeros((len(part), *self._shape))
                self._write(part, columns, values, n_threads)
                np.abs(values, out=values)
                if weight is not None:
                    of_rows = weight[rows][begin : begin + step]
                    values *= of_rows.reshape(-1, *[1] * (values.ndim - 1))
                sums += values.sum(axis=0)
        return sums

    @property
    def _shape(self) -> tuple[int, ...]:
        """Of the values of a row."""
        features = (self._forest.n_features,) * (2 if self._interactions else 1)
        return (*features, len(self._outputs))

    def _write(
        self, block: Array, columns: npt.NDArray[np.int32], out: npt.NDArray[Any], n_threads: int
    ) -> None:
        write = self._core.write_pairs if self._interactions else self._core.write
        write(block, columns, self._columns, self._unit, out, n_threads)

    def _refuse_too_large(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], beside: int, n_threads: int
    ) -> None:
        """Raise MemoryError where a result of this shape, and bytes beside it, take more than there is."""
        result = int(np.prod([*shape, dtype.itemsize], dtype=object))
        pairs = self._core.bytes_of_pairs if self._interactions else 0
        beside += n_threads * (self._core.bytes_of_thread + pairs)
        free = available()
        if free is None or result + beside <= free:
            return
        words = ["features"] * (len(self._shape) - 1) + ["outputs"]
        if len(shape) > len(self._shape):
            words = ["rows", *words]
        sizes = " x ".join(f"{size:,} {word}" for size, word in zip(shape, words, strict=True))
        raise MemoryError(
            f"shap_values takes {in_words(result + beside)} ({sizes} of {dtype.name}: {in_words(result)}; "
            f"{n_threads} thread(s): {in_words(beside)}), and {in_words(free)} are available. Fewer rows or "
            'outputs, dtype="float32" or reduce="mean_abs" take less.'
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


def _explainer(forest: Forest, n_trees: int, outputs: npt.NDArray[np.int32]) -> _core.ForestExplainer:
    """Return the ways to the leaves of the first trees, for outputs that ascend; the last ones are kept."""
    asked = n_trees, outputs.tobytes()
    kept = forest.explainer
    if kept is None or kept[0] != asked:
        arrays = {name: getattr(forest, name) for name in LAYOUT if name != "shape"}
        kept = asked, _core.ForestExplainer(arrays, n_trees, outputs)
        forest.explainer = kept
    return kept[1]
