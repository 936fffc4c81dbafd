"""Sums over rows that do not depend on the order of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf import _core
from polyleaf.data.inputs import Array, FloatArray


def column_sums(
    values: Array, weight: FloatArray | None = None, *, squares: bool = False, n_threads: int = 1
) -> FloatArray:
    """Return, per column, the weighted sum of its numbers (or of their squares), rounded once.

    Parameters
    ----------
    values : ndarray of shape (rows,) or (rows, columns)
        Numbers; those of weight 0 do not count.
    weight : float64 ndarray of shape (rows,) or (rows, columns), or None
        Of rows or cells; None: 1.
    squares, n_threads
        Whether to sum squares; threads change no bit.

    Returns
    -------
    float64 ndarray of shape (columns,)
    """
    kind = np.float32 if values.dtype == np.float32 else np.float64
    matrix: npt.NDArray[Any] = np.ascontiguousarray(values.reshape(len(values), -1), dtype=kind)
    if weight is not None:
        weight = np.ascontiguousarray(weight.reshape(len(values), -1), dtype=np.float64)
    return _core.column_sums(matrix, weight, squares, n_threads)


def total(values: Array) -> float:
    """Return the sum of all numbers of an array."""
    return float(column_sums(values.ravel())[0])


def group_sums(values: FloatArray | None, group: npt.NDArray[np.integer[Any]], n_groups: int) -> FloatArray:
    """Return the sum of the numbers (None: of ones) of each group."""
    if values is not None:
        values = np.ascontiguousarray(values, dtype=np.float64)
    return _core.group_sums(values, np.ascontiguousarray(group, dtype=np.int32), n_groups)


def weighted_mean(values: Array, weight: FloatArray | None) -> FloatArray:
    """Return the weighted mean of each column; 0 for a column without weight.

    Sums stay within float64 whatever the size of numbers and weights: powers of two are divided out first.
    """
    size = _power_of_two(np.abs(values).max(axis=0, initial=0.0))
    shares = values / size
    if weight is None:
        mean = column_sums(shares) / len(values)
    else:
        weight = weight / _power_of_two(weight.max(initial=0.0))
        whole = column_sums(weight)
        mean = column_sums(shares, weight) / np.where(whole > 0, whole, 1.0)
    return np.asarray(mean.reshape(np.shape(size)) * size, dtype=np.float64)


def _power_of_two(largest: Array) -> FloatArray:
    """Return powers of two near these numbers; a division by them changes no digit."""
    return np.asarray(np.ldexp(1.0, np.clip(np.frexp(largest)[1], -1000, 1000)))
