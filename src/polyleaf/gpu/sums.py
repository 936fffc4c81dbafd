"""Sums over the rows of arrays on the device, which no order changes (rules/exact_sum.hpp)."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyleaf import _core
from polyleaf.data.inputs import FloatArray
from polyleaf.gpu.memory import COLUMN_PIECE
from polyleaf.gpu.runtime import blocks, cupy, kernel, launch


def row_stride(values: Any) -> np.uint64:
    """Return how many numbers the rows of an array are apart, whose outputs must stand side by side."""
    assert values.ndim == 1 or values.shape[1] == 1 or values.strides[1] == values.itemsize
    return np.uint64(values.strides[0] // values.itemsize)


def _grid(values: Any) -> tuple[tuple[int, int], int]:
    """Return blocks and threads of kernels with a thread per output and a block per piece of the rows."""
    n_rows, n_outputs = values.shape
    threads = min(128, blocks(n_outputs, 32) * 32)
    return (blocks(n_rows, COLUMN_PIECE), blocks(n_outputs, threads)), threads


def column_grids(values: Any, weight: Any, *, squares: bool = False) -> Any:
    """Return the grids of the sums of columns, of shape (2, outputs), from the largest term of each."""
    cp = cupy()
    n_rows, n_outputs = values.shape
    grid, threads = _grid(values)
    parts = cp.empty((grid[0], n_outputs))
    launch(
        kernel("gradients.cuh", "largest_columns"),
        grid,
        threads,
        values,
        row_stride(values),
        weight,
        np.uint64(n_rows),
        n_outputs,
        squares,
        COLUMN_PIECE,
        parts,
    )
    grids = cp.empty((2, n_outputs))
    launch(
        kernel("gradients.cuh", "choose_grids"),
        (n_outputs,),
        32,
        parts,
        len(parts),
        n_outputs,
        float(n_rows),
        grids,
    )
    return grids


def constant_grids(largest: float, n_rows: int, n_outputs: int) -> Any:
    """Return the grids of sums over the rows of terms that are at most `largest`."""
    coarse, fine = _core.sum_grid(largest, float(n_rows))
    return cupy().asarray(np.repeat([[coarse], [fine]], n_outputs, axis=1))


def column_sums(values: Any, weight: Any, grids: Any, *, squares: bool = False, least: Any = None) -> Any:
    """Return partial sums of magnitudes or squares, both parts of each, of shape (parts, 2, outputs).

    `least` is an array of shape (parts, outputs) for the smallest values.
    """
    n_rows, n_outputs = values.shape
    grid, threads = _grid(values)
    parts = cupy().empty((grid[0], 2, n_outputs))
    launch(
        kernel("gradients.cuh", "sum_columns"),
        grid,
        threads,
        values,
        row_stride(values),
        weight,
        np.uint64(n_rows),
        n_outputs,
        squares,
        COLUMN_PIECE,
        grids,
        parts,
        least,
    )
    return parts


def column_squares(values: Any, weight: Any) -> FloatArray:
    """Return, per output, the sum over the rows of weighted squares, on the host."""
    parts = column_sums(values, weight, column_grids(values, weight, squares=True), squares=True)
    coarse, fine = parts.get().sum(axis=0)
    return np.asarray(coarse + fine)
