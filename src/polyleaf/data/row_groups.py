"""Rows that belong together, as users say so."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.device_arrays import on_host
from polyleaf.data.inputs import Mask


def group_numbers(groups: Any, kept: Mask | None, n_rows: int) -> npt.NDArray[np.intp]:
    """Return the number of the group that each row is in.

    Parameters
    ----------
    groups : array-like of shape (rows given,)
        The group of each row: numbers or text.
    kept : bool ndarray or None
        Which of the rows given are there; None: all.
    n_rows : int
        How many are there.

    Raises
    ------
    ValueError
        When there is not one for each row, or one is missing.
    """
    if np.ma.is_masked(groups):
        raise ValueError("groups is a masked array with masked (missing) entries, which are not allowed.")
    if isinstance(groups, str):
        raise ValueError(
            f"groups is {groups!r}; it must hold the group of each row, not the name of a column."
        )
    values = np.asarray(on_host(groups))
    n_given = n_rows if kept is None else len(kept)
    if values.ndim != 1 or len(values) != n_given:
        raise ValueError(f"groups has shape {values.shape}; it must be ({n_given},), one for each row of X.")
    if kept is not None:
        values = values[kept]
    missing = np.array([_is_missing(one) for one in values.tolist()], dtype=bool)
    if missing.any():
        raise ValueError(f"groups has a missing value in row {int(np.argmax(missing))}.")
    try:
        return np.unique(values, return_inverse=True)[1]
    except TypeError:  # of several types, which have no order
        return np.unique([repr(one) for one in values.tolist()], return_inverse=True)[1]


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, or one that is not equal to itself, as NaN and the NA of pandas are."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # NA does not say what it is
        return True
