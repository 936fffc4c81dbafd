"""Sums over the rows of arrays on the device, which no order changes (rules/exact_sum.hpp)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from polyleaf import _core
from polyleaf.data.inputs import FloatArray
from polyleaf.gpu.memory import COLUMN_CHUNK
from polyleaf.gpu.runtime import blocks, cupy, kernel, launch
from polyleaf.gpu.structs import Record


def row_stride(values: Any) -> int:
    """Return how many numbers the rows of an array are apart, whose outputs must stand side by side."""
    assert values.ndim == 1 or values.shape[1] == 1 or values.strides[1] == values.itemsize
    return int(values.strides[0] // values.itemsize)


def float_rows(values: Any) -> Record:
    """Return a float32 array of shape (rows, outputs), or None, as kernels take it."""
    return Record("FloatRows", values=values, stride=0 if values is None else row_stride(values))


@dataclass(frozen=True)
class Columns:
    """Columns of an array of which magnitudes or squares are summed, times the weights of the rows.

    Attributes
    ----------
    values : float32 CuPy array of shape (rows, outputs)
        The terms.
    weight : float64 CuPy array of shape (rows,) or None
        Weight of each row.
    squares : bool, default=False
        Whether squares are summed; else magnitudes.
    """

    values: Any
    weight: Any
    squares: bool = False

    def grids(self) -> Any:
        """Return the grids of the sums, of shape (2, outputs), from the largest term of each."""
        cp = cupy()
        n_rows, n_outputs = self.values.shape
        parts = cp.empty((self.n_parts, n_outputs))
        self._launch("largest_columns", parts)
        grids = cp.empty((2, n_outputs))
        choose = kernel("gradients.cuh", "choose_grids")
        launch(choose, (n_outputs,), 32, parts, len(parts), n_outputs, float(n_rows), grids)
        return grids

    def sums(self, grids: Any, least: Any = None) -> Any:
        """Return partial sums, both parts of each, of shape (parts, 2, outputs).

        `least` is an array of shape (parts, outputs) for the smallest values.
        """
        parts = cupy().empty((self.n_parts, 2, self.values.shape[1]))
        self._launch("sum_columns", grids, parts, least)
        return parts

    @property
    def n_parts(self) -> int:
        """Number of partial sums."""
        return blocks(len(self.values), COLUMN_CHUNK)

    @cached_property
    def _record(self) -> Record:
        n_rows, n_outputs = self.values.shape
        return Record(
            "Columns",
            rows=float_rows(self.values),
            weight=self.weight,
            n_rows=n_rows,
            n_outputs=n_outputs,
            squares=self.squares,
            rows_per_block=COLUMN_CHUNK,
        )

    def _launch(self, name: str, *arguments: Any) -> None:
        """Run a kernel with a thread per output and a block per chunk of the rows."""
        n_outputs = self.values.shape[1]
        threads = min(128, blocks(n_outputs, 32) * 32)
        grid = (self.n_parts, blocks(n_outputs, threads))
        launch(kernel("gradients.cuh", name), grid, threads, self._record, *arguments)


def constant_grids(largest: float, n_rows: int, n_outputs: int) -> FloatArray:
    """Return the grids of sums over the rows of terms that are at most `largest`, on the host."""
    coarse, fine = _core.sum_grid(largest, float(n_rows))
    return np.repeat([[coarse], [fine]], n_outputs, axis=1)


def column_squares(values: Any, weight: Any) -> FloatArray:
    """Return, per output, the sum over the rows of weighted squares, on the host."""
    columns = Columns(values, weight, squares=True)
    coarse, fine = columns.sums(columns.grids()).get().sum(axis=0)
    return np.asarray(coarse + fine)
