"""SciPy's sparse formats: looked at before SciPy's compiled code reads them, and brought into one of two.

That code trusts what the arrays say: an index out of range is read from, or written to, all the same. SciPy's
own check leaves out matrices whose last pointer is 0, and formats other than compressed rows and columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse

Array = npt.NDArray[Any]
SparseTable: TypeAlias = "scipy.sparse.csr_array[Any, Any] | scipy.sparse.csc_array[Any]"


def compressed(matrix: Any, name: str) -> SparseTable:
    """Return a sound 2-D sparse matrix in compressed rows or columns, sorted, without duplicates.

    Parameters
    ----------
    matrix : SciPy sparse array or matrix
        Of any format; it is left as it is. CSR and CSC keep their form and, where nothing is to be done,
        their memory; other formats become CSR. Duplicate entries are summed.
    name : str
        What errors call it.

    Raises
    ------
    ValueError
        When its arrays contradict each other or its shape.
    """
    if matrix.ndim != 2:
        raise ValueError(f"{name} is sparse with shape {matrix.shape}; it must have rows and columns.")
    try:
        table = _READERS[matrix.format](matrix)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} is not a sound sparse matrix ({matrix.format}): {error}") from error
    if not table.has_canonical_format:
        table = table.copy()
        table.sum_duplicates()
    return table


def _read_csr(matrix: Any) -> SparseTable:
    _check_compressed(matrix, matrix.shape, len(matrix.data))
    _check_values(matrix.data, 1)
    return scipy.sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _read_csc(matrix: Any) -> SparseTable:
    _check_compressed(matrix, matrix.shape[::-1], len(matrix.data))
    _check_values(matrix.data, 1)
    return scipy.sparse.csc_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _read_bsr(matrix: Any) -> SparseTable:
    _check_values(matrix.data, 3)
    blocks = []
    for cells, block, what in zip(matrix.shape, matrix.data.shape[1:], ("rows", "columns"), strict=True):
        if block < 1 or cells % block != 0:
            raise ValueError(f"its {cells} {what} are no multiple of the {block} {what} of a block.")
        blocks.append(cells // block)
    _check_compressed(matrix, (blocks[0], blocks[1]), len(matrix.data))
    parts = (matrix.data, matrix.indices, matrix.indptr)
    return scipy.sparse.bsr_array(parts, shape=matrix.shape).tocsr()


def _read_coo(matrix: Any) -> SparseTable:
    _check_values(matrix.data, 1)
    places = {"row": matrix.row, "col": matrix.col}
    for (what, indices), size in zip(places.items(), matrix.shape, strict=True):
        _check_integers(indices, what)
        if len(indices) != len(matrix.data):
            raise ValueError(f"it has {len(matrix.data)} values, but {what} has {len(indices)} entries.")
        _check_range(indices, size, what)
    return scipy.sparse.coo_array((matrix.data, (matrix.row, matrix.col)), shape=matrix.shape).tocsr()


def _read_dia(matrix: Any) -> SparseTable:
    _check_values(matrix.data, 2)
    offsets = matrix.offsets
    _check_integers(offsets, "offsets")
    if len(offsets) != len(matrix.data):
        raise ValueError(f"it has {len(matrix.data)} diagonals, but {len(offsets)} offsets.")
    if len(np.unique(offsets)) < len(offsets):
        raise ValueError("two of its diagonals have the same offset.")
    n_rows, n_columns = matrix.shape
    inside = (offsets > -n_rows) & (offsets < n_columns)
    parts = (matrix.data[inside], offsets[inside])
    return scipy.sparse.dia_array(parts, shape=matrix.shape).tocsr()


def _read_dok(matrix: Any) -> SparseTable:
    rows = _whole_numbers(row for row, _ in matrix.keys())  # noqa: SIM118 - iterating it yields rows
    columns = _whole_numbers(column for _, column in matrix.keys())  # noqa: SIM118
    values = np.array(list(matrix.values()), dtype=matrix.dtype)
    _check_range(rows, matrix.shape[0], "row")
    _check_range(columns, matrix.shape[1], "column")
    return _read_coo(scipy.sparse.coo_array((values, (rows, columns)), shape=matrix.shape))


def _read_lil(matrix: Any) -> SparseTable:
    n_rows = matrix.shape[0]
    if np.shape(matrix.rows) != (n_rows,) or np.shape(matrix.data) != (n_rows,):
        raise ValueError(f"it has {n_rows} rows, but not as many lists of columns and of values.")
    lengths = [len(row) for row in matrix.rows]
    for row, (length, cells) in enumerate(zip(lengths, matrix.data, strict=True)):
        if length != len(cells):
            raise ValueError(f"row {row} has {length} columns, but {len(cells)} values.")
    columns = _whole_numbers(chain.from_iterable(matrix.rows))
    _check_range(columns, matrix.shape[1], "column")
    values = np.array(list(chain.from_iterable(matrix.data)), dtype=matrix.dtype)
    pointers = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return scipy.sparse.csr_array((values, columns, pointers), shape=matrix.shape)


_READERS: dict[str, Callable[[Any], SparseTable]] = {
    "csr": _read_csr,
    "csc": _read_csc,
    "bsr": _read_bsr,
    "coo": _read_coo,
    "dia": _read_dia,
    "dok": _read_dok,
    "lil": _read_lil,
}


# --- what the arrays must be -------------------------------------------------------------------------------


def _check_compressed(matrix: Any, shape: tuple[int, int], n_values: int) -> None:
    """Check pointers and indices; `shape` is the number of lines, and of places in a line."""
    pointers, indices = matrix.indptr, matrix.indices
    _check_integers(pointers, "indptr")
    _check_integers(indices, "indices")
    lines, places = shape
    if len(pointers) != lines + 1:
        raise ValueError(f"indptr has {len(pointers)} entries; it must have {lines + 1}.")
    if pointers[0] != 0:
        raise ValueError(f"indptr starts with {pointers[0]}; it must start with 0.")
    falls = np.flatnonzero(pointers[1:] < pointers[:-1])
    if len(falls) > 0:
        at = int(falls[0])
        raise ValueError(f"indptr falls from {pointers[at]} to {pointers[at + 1]}; it must never fall.")
    if len(indices) != n_values:
        raise ValueError(f"it has {n_values} values, but {len(indices)} indices.")
    if pointers[-1] > n_values:
        raise ValueError(f"indptr ends with {pointers[-1]}, but there are {n_values} values.")
    _check_range(indices[: pointers[-1]], places, "indices")


def _check_values(values: Any, ndim: int) -> None:
    if not isinstance(values, np.ndarray) or values.ndim != ndim:
        raise ValueError(f"its data are no {ndim}-D array.")


def _check_integers(values: Any, what: str) -> None:
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype.kind not in "iu":
        raise ValueError(f"{what} is no 1-D array of integers.")


def _check_range(indices: Array, size: int, what: str) -> None:
    if len(indices) == 0:
        return
    for index in (int(indices.min()), int(indices.max())):
        if not 0 <= index < size:
            raise ValueError(f"{what} holds {index}; allowed is 0 to {size - 1}.")


def _whole_numbers(values: Iterable[Any]) -> npt.NDArray[np.int64]:
    return np.fromiter(values, dtype=np.int64)
