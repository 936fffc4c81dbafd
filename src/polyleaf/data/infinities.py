"""Infinities in a table, which are refused: the first one is named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyleaf import _core
from polyleaf.data.row_names import row_name
from polyleaf.data.sparse_formats import SparseTable
from polyleaf.data.sparse_tables import place_of_infinity
from polyleaf.data.tables import Array

# Cells looked at together when searching for infinities: bounds the memory of the temporary mask.
_BLOCK_CELLS = 1 << 20


def refuse_infinity(
    table: Array, labels: Sequence[object] | None, name: str, n_threads: int, first_row: int = 0
) -> None:
    """Raise naming the first infinity; `labels` None: columns are called by their numbers."""
    if table.dtype.kind == "f" and _core.has_infinity(table, n_threads):
        search_infinity(table, labels, name, first_row=first_row)


def search_infinity(
    table: Any,
    labels: Sequence[object] | None,
    name: str,
    xp: Any = np,
    block_cells: int = _BLOCK_CELLS,
    first_row: int = 0,
) -> None:
    """Raise naming the first infinity of a table of floats, if there is one.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
        Of NumPy, or of the module `xp`.
    labels : sequence or None
        What the columns are called; None: by their numbers.
    name : str
        What the error calls the table.
    xp : module, default=numpy
        numpy or cupy.
    block_cells : int
        Cells looked at together: bounds the memory of the temporary mask.
    first_row : int, default=0
        Number of the first row.
    """
    by_column = table.flags.f_contiguous and not table.flags.c_contiguous
    lines = table.T if by_column else table
    step = max(1, block_cells // max(1, lines.shape[1]))
    for start in range(0, len(lines), step):
        found = xp.isinf(lines[start : start + step])
        if found.any():
            line, place = map(int, xp.argwhere(found)[0])
            row, column = (place, line + start) if by_column else (line + start, place)
            label = column if labels is None else labels[column]
            where = f"{row_name(first_row + row)}, column {label!r}"
            raise ValueError(
                f"{name} contains infinity or a value too large for {table.dtype}: {table[row, column]} in "
                f"{where}. Allowed are finite numbers and NaN (missing)."
            )


def refuse_sparse_infinity(table: SparseTable, labels: Sequence[object], name: str) -> None:
    if table.data.dtype.kind != "f" or not _core.has_infinity(table.data[:, np.newaxis], 1):
        return
    place = place_of_infinity(table)
    if place is not None:
        row, column, value = place
        raise ValueError(
            f"{name} contains infinity or a value too large for {table.dtype}: {value} in "
            f"{row_name(row)}, column {labels[column]!r}. Allowed are finite numbers and NaN (missing)."
        )
