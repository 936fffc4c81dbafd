"""Sums over rows that do not depend on the order of the rows, nor on the shards they are in.

Where a run has its rows in several shards, these are sums over all of them (:mod:`polyleaf.peers.current`).
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf import _core
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.memory import COLUMNS_TOGETHER
from polyleaf.peers.current import current_peers


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
    matrix: npt.NDArray[Any] = np.ascontiguousarray(_as_columns(values), dtype=kind)
    if weight is not None:
        weight = np.ascontiguousarray(_as_columns(weight), dtype=np.float64)
    return _core.column_sums(matrix, weight, squares, n_threads, current_peers())


def total(values: Array) -> float:
    """Return the sum of all numbers of an array."""
    return float(column_sums(values.ravel())[0])


def group_sums(values: FloatArray | None, group: npt.NDArray[np.integer[Any]], n_groups: int) -> FloatArray:
    """Return the sum of the numbers (None: of ones) of each group."""
    if values is not None:
        values = np.ascontiguousarray(values, dtype=np.float64)
    return _core.group_sums(values, np.ascontiguousarray(group, dtype=np.int32), n_groups, current_peers())


def column_quantiles(values: Array, weight: FloatArray | None, levels: FloatArray) -> FloatArray:
    """Return, per column, the quantile of its level that the core renews leaf values with.

    Of the numbers in ascending order it is the first whose cumulative weight reaches level * total; where it
    equals that, everything up to the next number minimises the pinball loss, and the quantile is halfway. It
    is 0 where no number has any weight. Those of all columns are found together.

    Parameters
    ----------
    values : ndarray of shape (rows, columns)
        Numbers; those of weight 0 do not count.
    weight : float64 ndarray of shape (rows,) or (rows, columns), or None
        Of rows or cells; None: 1.
    levels : float64 ndarray of shape (columns,)
        From 0 to 1.
    """
    numbers = np.ascontiguousarray(values, dtype=np.float64)
    if weight is not None:
        weight = np.ascontiguousarray(_as_columns(weight), dtype=np.float64)
    return _core.quantiles(numbers, weight, np.ascontiguousarray(levels, dtype=np.float64), current_peers())


def row_count(values: Sized) -> int:
    """Return the number of rows, those of all shards where there are several."""
    peers = current_peers()
    if peers is None:
        return len(values)
    count = np.array([len(values)], dtype=np.int64)
    peers.add(count)
    return int(count[0])


def largest(values: Array, axis: int | None = 0, initial: float = 0.0) -> FloatArray:
    """Return the largest of the numbers along an axis, or of all; `initial` is one of them."""
    return _over_shards(np.asarray(values.max(axis=axis, initial=initial), dtype=np.float64))


def column_range(values: Array, counted: Array | None = None) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest number of each column, of the cells `counted` (None: of all)."""
    where: Any = True if counted is None else counted
    least = np.asarray(values.min(axis=0, where=where, initial=np.inf), dtype=np.float64)
    most = np.asarray(values.max(axis=0, where=where, initial=-np.inf), dtype=np.float64)
    return -_over_shards(-least), _over_shards(most)


def any_of_columns(marked: Array) -> npt.NDArray[np.bool_]:
    """Return which columns have a cell that is marked."""
    return _over_shards(np.asarray(marked.any(axis=0), dtype=np.float64)) > 0


def _over_shards(values: FloatArray) -> FloatArray:
    """Return the largest that any shard has of each number."""
    peers = current_peers()
    if peers is None:
        return values
    own = np.ascontiguousarray(values, dtype=np.float64).reshape(-1).copy()
    peers.largest(own)
    return own.reshape(np.shape(values))


def _as_columns(values: Array) -> Array:
    return values[:, np.newaxis] if values.ndim == 1 else values.reshape(len(values), values.shape[1])


def weighted_mean(values: Array, weight: FloatArray | None) -> FloatArray:
    """Return the weighted mean of each column; 0 for a column without weight.

    Sums stay within float64 whatever the size of numbers and weights: powers of two are divided out first.
    """
    if values.ndim == 2:
        return mean_of_columns(lambda some: values[:, some], values.shape[1], weight)
    return _mean(values, weight)


def mean_of_columns(
    columns: Callable[[slice], Array], n_columns: int, weight: FloatArray | None
) -> FloatArray:
    """Return the weighted means of columns that a function makes, a few at a time.

    How many does not hang on the rows: shards exchange sums for each of them.
    """
    if n_columns <= COLUMNS_TOGETHER:
        return _mean(columns(slice(0, n_columns)), weight)
    means = []
    for first in range(0, n_columns, COLUMNS_TOGETHER):
        some = slice(first, min(first + COLUMNS_TOGETHER, n_columns))
        own = weight if weight is None or weight.ndim == 1 else weight[:, some]
        means.append(_mean(columns(some), own))
    return np.concatenate(means)


def _mean(values: Array, weight: FloatArray | None) -> FloatArray:
    matrix = np.ascontiguousarray(_as_columns(values), dtype=np.float64)
    if weight is not None:
        weight = np.ascontiguousarray(_as_columns(weight), dtype=np.float64)
    means: FloatArray = _core.column_means(matrix, weight, current_peers())
    return means.reshape(values.shape[1:])
