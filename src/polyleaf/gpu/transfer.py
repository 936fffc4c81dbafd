"""Tables of the host through the device, some rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import FloatArray
from polyleaf.gpu.runtime import blocks, cupy

# Rows that are on their way together: enough work for some threads, and soon copied to the device.
_PIECE_BYTES = 1 << 25
_MOST_THREADS = 8  # more do not copy faster


class Piece:
    """Some rows on their way, and their results: page-locked memory, which the device copies by itself.

    Parameters
    ----------
    table : ndarray of shape (rows, columns)
        The whole table.
    out : float64 ndarray of shape (rows, outputs)
        All results.
    n_rows : int
        The most rows of a piece.
    """

    def __init__(self, table: npt.NDArray[Any], out: FloatArray, n_rows: int) -> None:
        self._table, self._out = table, out
        self._given = _page_locked((n_rows, table.shape[1]), table.dtype)
        self._results = _page_locked((n_rows, out.shape[1]), out.dtype)
        self._done = cupy().cuda.Event(disable_timing=True)
        self._rows = slice(0, 0)

    def begin(self, rows: slice, work: Callable[[Any], Any], copy: Callable[..., None]) -> None:
        """Copy some rows to the device, and have them worked on and the results brought back meanwhile."""
        cp = cupy()
        self._rows = rows
        given = self._given[: rows.stop - rows.start]
        copy(given, self._table[rows])
        stream = cp.cuda.get_current_stream()
        on_device = cp.empty(given.shape, dtype=given.dtype)
        on_device.data.copy_from_host_async(given.ctypes.data, given.nbytes, stream)
        results = cp.ascontiguousarray(work(on_device))
        results.data.copy_to_host_async(self._results.ctypes.data, results.nbytes, stream)
        self._done.record(stream)

    def finish(self, copy: Callable[..., None]) -> None:
        """Put the results of the rows that were begun where they belong."""
        self._done.synchronize()
        copy(self._out[self._rows], self._results[: self._rows.stop - self._rows.start])


def through_device(
    table: npt.NDArray[Any], n_outputs: int, work: Callable[[Any], Any], n_threads: int
) -> FloatArray:
    """Return what the device makes of the rows of a table.

    While it works on some rows, threads of the host copy the next ones.

    Parameters
    ----------
    table : ndarray of shape (rows, columns)
        On the host.
    n_outputs : int
        Results of a row.
    work : callable
        Takes a CuPy array of some rows; returns their results, float64 of shape (rows, outputs).
    n_threads : int
        How many may copy.
    """
    step = max(1, _PIECE_BYTES // max(table.shape[1] * table.itemsize, n_outputs * 8))
    if len(table) <= step:
        return np.asarray(work(cupy().asarray(table)).get())
    out: FloatArray = np.empty((len(table), n_outputs))
    try:
        pieces = [Piece(table, out, step) for _ in range(2)]
    except cupy().cuda.runtime.CUDARuntimeError:  # the system locks no more pages: one piece after the other
        for first in range(0, len(table), step):
            out[first : first + step] = work(cupy().asarray(table[first : first + step])).get()
        return out
    n_threads = min(n_threads, _MOST_THREADS)
    with ThreadPoolExecutor(n_threads) as threads:

        def copy(to: npt.NDArray[Any], source: npt.NDArray[Any]) -> None:
            rows = blocks(len(source), n_threads)
            parts = [slice(first, first + rows) for first in range(0, len(source), rows)]
            for _ in threads.map(lambda part: np.copyto(to[part], source[part]), parts):
                pass

        try:
            begun = None
            for number, first in enumerate(range(0, len(table), step)):
                piece = pieces[number % 2]
                piece.begin(slice(first, min(first + step, len(table))), work, copy)
                if begun is not None:
                    begun.finish(copy)
                begun = piece
            piece.finish(copy)
        finally:  # nothing may still be copied when the memory is given back
            cupy().cuda.get_current_stream().synchronize()
    return out


def _page_locked(shape: tuple[int, int], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an array that CuPy's pool of page-locked memory gives, and takes back with it."""
    size = shape[0] * shape[1]
    memory = cupy().cuda.alloc_pinned_memory(size * np.dtype(dtype).itemsize)
    return np.frombuffer(memory, dtype, size).reshape(shape)
