"""Ranges and weighted variances of targets, one per output.

Weights are None (all equal), one per row, or one per row and output; a cell of weight 0 does not count,
whatever finite number it holds.
"""

from __future__ import annotations

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sums import column_range, mean_of_columns, weighted_mean


def observed_range(y: Array, weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest value of each column of `y` that counts."""
    return column_range(y, None if weight is None or weight.ndim == 1 else weight > 0)


def weighted_variance(y: Array, weight: FloatArray | None) -> FloatArray:
    """Return the weighted variance of each column of `y`, whose squares must be within float64."""
    mean = weighted_mean(y, weight)
    return mean_of_columns(lambda some: (y[:, some] - mean[some]) ** 2, y.shape[1], weight)
