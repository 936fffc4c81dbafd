"""The table of a run that is read from a source, as numbers: some columns or some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.category_values import Categories
from polyleaf.data.memory import panel_width
from polyleaf.data.source import Source
from polyleaf.data.tables import Array

Mask = npt.NDArray[np.bool_]


class StreamedTable:
    """Numbers of the rows of a source that have any weight; what is read is never kept.

    Parameters
    ----------
    source : Source
        Where the rows are.
    categories : mapping of int to CategoryValues
        Of the categorical columns, which become codes.
    kept : bool ndarray or None
        Which rows of the source there are. None: all.

    Attributes
    ----------
    cell_bytes : int
        Of a number of the source.
    panel_bytes : int
        What the numbers of a panel and the search for its cut points may take.
    """

    def __init__(self, source: Source, categories: Categories, kept: Mask | None) -> None:
        self._source = source
        self._categories = categories
        self._kept = kept
        n_rows, n_columns = source.shape
        self.shape = (n_rows if kept is None else int(kept.sum()), n_columns)
        self.cell_bytes = source.cell_bytes
        self.panel_bytes = 0

    def panels(self, n_threads: int, weighted: bool) -> Iterator[tuple[int, Array, int]]:
        """Yield blocks of columns, column by column in memory: first column, numbers, and how many threads.

        Parameters
        ----------
        n_threads : int
            Threads that could search for cut points.
        weighted : bool
            Whether the rows have weights.
        """
        n_rows, n_columns = self.shape
        width, threads = panel_width(n_rows, self.cell_bytes, self.panel_bytes, n_threads, weighted=weighted)
        for first in range(0, n_columns, width):
            # Not kept here, so that it is gone before the next one is read.
            yield first, self.columns(range(first, min(first + width, n_columns)), n_threads), threads

    def columns(self, columns: Sequence[int], n_threads: int = 1) -> Array:
        """Return all rows of some columns, column by column in memory."""
        table: Array | None = None
        at = 0
        for block in self._blocks(columns, n_threads):
            if table is None:
                table = np.empty((self.shape[0], len(columns)), block.dtype, order="F")
            common = np.result_type(table.dtype, block.dtype)
            if common != table.dtype:  # nulls make floats of integers
                table = table.astype(common)
            table[at : at + len(block)] = block
            at += len(block)
        return np.empty((0, len(columns))) if table is None else table

    def rows_of(self, columns: Sequence[int] | npt.NDArray[np.integer[Any]]) -> Iterator[tuple[slice, Array]]:
        """Yield blocks of rows of some columns, each with the rows it has."""
        at = 0
        for block in self._blocks(np.asarray(columns).tolist(), 1):
            yield slice(at, at + len(block)), block
            at += len(block)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the table as a whole; known once all of it has been read."""
        dtypes = {block.dtype for _, block in self.rows_of(range(self.shape[1]))}
        return np.result_type(*dtypes)

    def _blocks(self, columns: Sequence[int], n_threads: int) -> Iterator[Array]:
        begin = 0
        for block in self._source.blocks(columns, self._categories, n_threads):
            end = begin + len(block)
            yield block if self._kept is None else block[self._kept[begin:end]]
            begin = end
