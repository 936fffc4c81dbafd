"""The constant of the least Huber loss, found with sums over rows alone: rows may be in several shards."""

from __future__ import annotations

import numpy as np

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sums import column_quantiles, column_range, column_sums, largest
from polyleaf.losses.units import units_of_residuals

_LARGEST_DELTA = 1e300
# Newton's method takes a few steps, halving a double some hundred: this is never reached.
_MOST_STEPS = 2500


def huber_minimum(y: Array, weight: FloatArray | None, delta: float) -> FloatArray:
    """Return, for each column of `y`, where the derivative of the weighted loss, which ascends, is 0.

    The derivative is a line wherever no row comes within `delta` or leaves it, so that Newton's method ends
    at the minimum itself; where it would not get closer, the interval that has the minimum is halved.

    Parameters
    ----------
    y : float64 ndarray of shape (rows, columns)
        Targets.
    weight : float64 ndarray of shape (rows,) or (rows, columns), or None
        Of rows or cells; None: 1.
    delta : float
        Where the parabola becomes a line.
    """
    counted = None if weight is None else weight > 0
    if counted is not None and counted.ndim == 1:
        counted = counted[:, np.newaxis]
    least, most = column_range(y, counted)
    empty = least > most
    least, most = np.where(empty, 0.0, least), np.where(empty, 0.0, most)
    # Around the median sums are small; in units no size of target overflows.
    middle = column_quantiles(y, weight, np.full(y.shape[1], 0.5))
    unit = units_of_residuals(least, most, middle)
    centre = middle / unit
    if weight is not None:
        weight = weight / largest(weight, None, np.finfo(np.float64).tiny)
    derivative = _Derivative(y / unit - centre, weight, np.minimum(delta / unit, _LARGEST_DELTA))
    left, right = least / unit - centre, most / unit - centre
    return np.asarray((_root(derivative, left, right) + centre) * unit)


class _Derivative:
    """The derivative of the loss of each column, as a function of one score per column."""

    def __init__(self, values: FloatArray, weight: FloatArray | None, delta: FloatArray) -> None:
        self._values, self._delta = values, delta
        self._weight = weight
        cells = weight is not None and weight.ndim == 2
        self._twice = np.hstack([weight, weight]) if cells else weight  # type: ignore[list-item]

    def __call__(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return its value, and where the line it is part of is 0 (NaN: nowhere)."""
        values, n = self._values, self._values.shape[1]
        counts = np.empty((len(values), 2 * n), dtype=np.float32)  # of 0 and 1: exact
        high, low = values > score + self._delta, values < score - self._delta
        near = ~(high | low)
        counts[:, :n], counts[:, n:] = near, high
        counts[:, n:] -= low
        weights = column_sums(counts, self._twice)
        moment = column_sums(np.where(near, values, 0.0), self._weight) + self._delta * weights[n:]
        zero = np.divide(moment, weights[:n], out=np.full(n, np.nan), where=weights[:n] > 0)
        return score * weights[:n] - moment, zero


def _root(derivative: _Derivative, left: FloatArray, right: FloatArray) -> FloatArray:
    """Return where the derivative of each column is 0, between two bounds; all columns go step by step."""
    score: FloatArray = np.clip(np.zeros_like(left), left, right)
    step = right - left
    for _ in range(_MOST_STEPS):
        value, zero = derivative(score)
        left, right = np.where(value < 0, score, left), np.where(value > 0, score, right)
        # NaN is not closer than anything.
        closer = (zero >= left) & (zero <= right) & (np.abs(zero - score) < 0.5 * step)
        following = np.where(closer, zero, left + 0.5 * (right - left))
        following = np.where((value == 0) | (zero == score), score, following)
        if (following == score).all():
            break
        step, score = np.abs(following - score), following
    return score
