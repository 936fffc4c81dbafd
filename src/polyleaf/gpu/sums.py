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
class WeightedRows:
    """Gradients of rows, their Hessians where there are any, and the weights of the rows.

    Attributes
    ----------
    gradient : float32 CuPy array of shape (rows, outputs)
        Or other numbers.
    hessian : float32 CuPy array of the same shape, or None
        The second kind of numbers.
    weight : float64 CuPy array of shape (rows,) or None
        Weight of each row; None: 1.
    squares : bool, default=False
        Whether squares are summed; else magnitudes.
    """

    gradient: Any
    hessian: Any
    weight: Any
    squares: bool = False

    @property
    def n_kinds(self) -> int:
        """1, or 2 with Hessians."""
        return 1 if self.hessian is None else 2

    @property
    def n_parts(self) -> int:
        """Number of partial sums."""
        return blocks(len(self.gradient), COLUMN_CHUNK)

    @cached_property
    def record(self) -> Record:
        """The rows as kernels take them."""
        n_rows, n_outputs = self.gradient.shape
        return Record(
            "Gradients",
            gradient=float_rows(self.gradient),
            hessian=float_rows(self.hessian),
            weight=self.weight,
            n_rows=n_rows,
            n_outputs=n_outputs,
        )

    def grids(self) -> Any:
        """Return the grids of the sums, of shape (kinds, 2, outputs), from the largest term of each."""
        cp = cupy()
        n_rows, n_outputs = self.gradient.shape
        parts = cp.empty((self.n_kinds, self.n_parts, n_outputs))
        self._launch("largest_columns", parts)
        grids = cp.empty((self.n_kinds, 2, n_outputs))
        grid = (n_outputs, self.n_kinds)
        choose = kernel("gradients.cuh", "choose_grids")
        launch(choose, grid, 32, parts, self.n_parts, n_outputs, float(n_rows), grids)
        return grids

    def sums(self, grids: Any, least: Any = None) -> Any:
        """Return partial sums, both parts of each, of shape (kinds, parts, 2, outputs).

        `least` is an array of shape (parts, outputs) for the smallest gradients.
        """
        parts = cupy().empty((self.n_kinds, self.n_parts, 2, self.gradient.shape[1]))
        self._launch("sum_columns", grids, parts, least)
        return parts

    @cached_property
    def _columns(self) -> Record:
        return Record("Columns", terms=self.record, squares=self.squares, rows_per_block=COLUMN_CHUNK)

    def _launch(self, name: str, *arguments: Any) -> None:
        """Run a kernel with a thread per output and a block per kind and chunk of the rows."""
        n_outputs = self.gradient.shape[1]
        threads = min(128, blocks(n_outputs, 32) * 32)
        grid = (self.n_parts, blocks(n_outputs, threads), self.n_kinds)
        launch(kernel("gradients.cuh", name), grid, threads, self._columns, *arguments)


def constant_grids(largest: float, n_rows: int, n_outputs: int) -> FloatArray:
    """Return grids of sums over the rows of terms that are at most `largest`, (2, outputs), on the host."""
    coarse, fine = _core.sum_grid(largest, float(n_rows))
    return np.repeat([[coarse], [fine]], n_outputs, axis=1)


def column_squares(values: Any, weight: Any) -> FloatArray:
    """Return, per output, the sum over the rows of weighted squares, on the host."""
    rows = WeightedRows(values, None, weight, squares=True)
    coarse, fine = rows.sums(rows.grids())[0].get().sum(axis=0)
    return np.asarray(coarse + fine)
