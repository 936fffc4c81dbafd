"""Integers that float64 cannot hold: neighbours of them would be the same number, so they are refused."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# All whole numbers up to this one have a float64 of their own.
LARGEST_EXACT = 1 << 53


def refuse_inexact(values: Array, where: str, remedy: str) -> None:
    """Raise ValueError where an integer is not equal to any float64.

    Parameters
    ----------
    values : ndarray
        Of any dtype: only integers of 64 bits and objects are looked at.
    where : str
        What the error says holds it, such as "X: column 'id'".
    remedy : str
        What to do about it.
    """
    value = inexact_integer(values)
    if value is not None:
        raise ValueError(
            f"{where} holds the integer {value}, beyond 2**53, which float64 rounds to another number; "
            f"{remedy}"
        )


def refuse_inexact_columns(table: Array, labels: Sequence[object] | None, name: str, remedy: str) -> None:
    """Raise ValueError naming the column of an integer that is not equal to any float64.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
        As in `refuse_inexact`.
    labels : sequence or None
        What the columns are called; None: by their numbers.
    name : str
        What the error calls the table.
    remedy : str
        What to do about it.
    """
    if inexact_integer(table) is None:
        return
    for j in range(table.shape[1]):
        label = j if labels is None else labels[j]
        refuse_inexact(table[:, j], f"{name}: column {label!r}", remedy)


def inexact_integer(values: Array) -> int | None:
    """Return the first integer that is not equal to any float64, None where there is none."""
    if values.size == 0:
        return None
    if values.dtype.kind == "O":
        return next((int(cell) for cell in values.ravel().tolist() if _is_inexact(cell)), None)
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8:
        return None
    if int(values.min()) >= -LARGEST_EXACT and int(values.max()) <= LARGEST_EXACT:
        return None
    # Exact are those whose odd part is small enough.
    size = np.abs(values).astype(np.uint64)
    lowest_bit = np.maximum(size & (~size + np.uint64(1)), np.uint64(1))
    found = np.flatnonzero(size // lowest_bit > LARGEST_EXACT)
    return int(values.ravel()[found[0]]) if len(found) > 0 else None


def _is_inexact(cell: object) -> bool:
    if not isinstance(cell, numbers.Integral):
        return False
    number = int(cell)
    return abs(number) > LARGEST_EXACT and _rounded(number) != number


def _rounded(number: int) -> int | None:
    try:
        return int(float(number))
    except OverflowError:  # reported as no number where it is converted
        return number
