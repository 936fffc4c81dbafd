"""Predictions of rows in which some features have other values: brute force, some rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sparse_tables import DenseRows
from polyleaf.model.forest import Forest

# Cells of rows, or of their scores, that are in memory together.
BLOCK_CELLS = 1 << 20


def used_blocks(
    tables: Iterable[Any], forest: Forest, numbers_of_row: int = 1
) -> Iterator[tuple[slice, Array]]:
    """Yield some rows of tables at a time: which ones, counted over all tables, and their used features.

    So many numbers are going to be computed for each row.
    """
    used = forest.used_features
    step = max(1, BLOCK_CELLS // max(len(used), numbers_of_row))
    before = 0
    for table in tables:
        n_rows = table.shape[0]
        if not isinstance(table, np.ndarray):
            for rows, block in DenseRows(table, used):
                for begin in range(0, len(block), step):
                    part = block[begin : begin + step]
                    first = before + rows.start + begin
                    yield slice(first, first + len(part)), part
        else:
            for begin in range(0, n_rows, step):
                part = table[begin : begin + step][:, used]
                yield slice(before + begin, before + begin + len(part)), part
        before += n_rows


@dataclass(frozen=True)
class Replacement:
    """Brute force: every row is predicted with every point of a grid.

    Attributes
    ----------
    forest : Forest
        The trees.
    n_rounds : int
        Rounds that count.
    chosen : sequence of int
        The features whose values are replaced.
    codes : sequence of float64 ndarray
        Their new values; the points are all combinations of them.
    respond : callable
        From raw scores of shape (rows, outputs of the forest) to numbers of shape (rows, outputs asked for).
    n_threads : int
        For the core.
    """

    forest: Forest
    n_rounds: int
    chosen: Sequence[int]
    codes: Sequence[FloatArray]
    respond: Callable[[FloatArray], FloatArray]
    n_threads: int

    def responses(self, block: Array) -> Iterator[tuple[int, FloatArray]]:
        """Yield, for each point, its number and the response of rows that are given by used features."""
        forest = self.forest.on_used_features
        rows = np.array(block, dtype=np.float64)
        used = self.forest.used_features.tolist()
        columns = [used.index(one) if one in used else None for one in self.chosen]
        for number, point in enumerate(product(*self.codes)):
            for column, code in zip(columns, point, strict=True):
                if column is not None:
                    rows[:, column] = code
            yield number, self.respond(forest.predict_raw(rows, self.n_rounds, self.n_threads))

    def means(self, blocks: Iterable[tuple[slice, Array]], weight: FloatArray | None) -> FloatArray:
        """Return the mean over the rows, of shape (points, outputs)."""
        return self._run(blocks, weight, None, None)

    def rows_and_means(
        self,
        blocks: Iterable[tuple[slice, Array]],
        weight: FloatArray | None,
        place: npt.NDArray[np.intp],
        out: FloatArray,
    ) -> FloatArray:
        """Return the mean, and write the response of each row.

        Parameters
        ----------
        blocks, weight
            The rows.
        place : int ndarray of shape (points of the result,)
            The point here that each point of the result is like.
        out : float64 ndarray of shape (outputs, rows, points of the result)
            Where to write.
        """
        return self._run(blocks, weight, place, out)

    def _run(
        self,
        blocks: Iterable[tuple[slice, Array]],
        weight: FloatArray | None,
        place: npt.NDArray[np.intp] | None,
        out: FloatArray | None,
    ) -> FloatArray:
        n_points = int(np.prod([len(one) for one in self.codes]))
        like = [] if place is None else [np.flatnonzero(place == point) for point in range(n_points)]
        sums: FloatArray | None = None
        total = 0.0
        for rows, block in blocks:
            own = np.ones(len(block)) if weight is None else weight[rows]
            total += float(own.sum())
            for point, response in self.responses(block):
                if sums is None:
                    sums = np.zeros((n_points, response.shape[1]))
                sums[point] += (response * own[:, np.newaxis]).sum(axis=0)
                if out is not None:
                    out[:, rows, like[point]] = response.T[:, :, np.newaxis]
        assert sums is not None
        return sums / total
