"""SciPy sparse tables of features: checked, and made dense a block at a time, never as a whole.

A cell that is not stored is a zero, a value like any other; a stored NaN is a missing value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf import _core
from polyleaf.data.sparse_formats import Array, SparseTable, compressed

# Cells made dense together: at most 64 MiB of float64, or one row or column where that is more.
_BLOCK_CELLS = 1 << 23


def read_sparse(X: Any, name: str, min_rows: int = 1) -> SparseTable:
    """Return a sparse table in compressed rows or columns, sorted, without duplicates; `X` is left as it is.

    Parameters
    ----------
    X : SciPy sparse array or matrix
        CSR and CSC keep their form and, where nothing is to be done, their memory; other formats become CSR.
        Duplicate entries are summed.
    name : str
        What errors call it.
    min_rows : int, default=1
        Rows it must have.
    """
    if X.ndim != 2:
        raise ValueError(f"{name}: Expected 2D array, got a sparse array of shape {X.shape}.")
    if X.dtype.kind == "c":
        raise ValueError(f"{name}: Complex data not supported; the sparse matrix has dtype {X.dtype}.")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{name} is sparse with dtype {X.dtype}; it must hold numbers.")
    refuse_empty(X.shape, name, min_rows)
    table = compressed(X, name)
    data = table.data
    if data.dtype.kind == "f" and data.dtype.itemsize not in (4, 8):
        with np.errstate(over="ignore"):  # what overflows is reported as infinity
            data = data.astype(np.float32 if data.dtype.itemsize < 4 else np.float64)
    elif not data.dtype.isnative:
        data = data.astype(data.dtype.newbyteorder("="))
    if data is not table.data:
        table = type(table)((data, table.indices, table.indptr), shape=table.shape)
    return table


def refuse_empty(shape: tuple[int, ...], name: str, min_rows: int = 1) -> None:
    """Raise for a table without columns, or with fewer rows than it must have, in scikit-learn's words."""
    for size, what, least in zip(shape, ("sample(s)", "feature(s)"), (min_rows, 1), strict=True):
        if size < least:
            raise ValueError(
                f"{name}: Found array with 0 {what} (shape={shape}) while a minimum of 1 is required."
            )


def place_of_infinity(table: SparseTable) -> tuple[int, int, Any] | None:
    """Return row, column and value of the first stored infinity, in the order of the storage."""
    data = table.data
    for start in range(0, len(data), _BLOCK_CELLS):
        found = np.isinf(data[start : start + _BLOCK_CELLS])
        if found.any():
            entry = start + int(np.argmax(found))
            line = int(np.searchsorted(table.indptr, entry, side="right")) - 1
            place = int(table.indices[entry])
            row, column = (line, place) if table.format == "csr" else (place, line)
            return row, column, data[entry]
    return None


def cells_by_columns(table: SparseTable) -> _core.SparseColumns:
    """Return the stored cells of a table that `read_sparse` returned, as the core takes them."""
    columns: Any = table.tocsc()
    begin = columns.indptr.astype(np.int64, copy=False)
    n_cells = int(begin[-1])  # there may be room behind them
    rows = columns.indices[:n_cells].astype(np.int32, copy=False)
    return _core.SparseColumns(columns.data[:n_cells].reshape(-1, 1), rows, begin, columns.shape[0])


def dense_columns(table: SparseTable) -> Iterator[tuple[int, Array]]:
    """Yield blocks of columns, dense and column by column in memory, each with its first column's number."""
    columns: Any = table.tocsc()
    n_rows, n_columns = columns.shape
    step = max(1, _BLOCK_CELLS // n_rows)
    for first in range(0, n_columns, step):
        yield first, columns[:, first : first + step].toarray(order="F")


class DenseRows:
    """Blocks of rows of some columns, dense, as often as one asks for them.

    Parameters
    ----------
    table : csr_array or csc_array
        The table.
    columns : ndarray of int
        Which columns, ascending.
    """

    def __init__(self, table: SparseTable, columns: npt.NDArray[np.integer[Any]]) -> None:
        chosen: Any = table[:, columns]
        n_rows, n_columns = chosen.shape
        self._step = max(1, _BLOCK_CELLS // n_columns)
        self._whole: Array | None = chosen.toarray() if n_rows <= self._step else None
        self._rows = chosen.tocsr() if self._whole is None else None
        self._n_rows = n_rows

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        if self._whole is not None:
            yield slice(0, self._n_rows), self._whole
            return
        rows: Any = self._rows
        for begin in range(0, self._n_rows, self._step):
            part = slice(begin, min(begin + self._step, self._n_rows))
            yield part, rows[part].toarray()
