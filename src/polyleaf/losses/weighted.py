"""Weighted variances and quantiles of targets, one per output.

Weights are None (all equal), one per row, or one per row and output; a cell of weight 0 does not count,
whatever finite number it holds.
"""

from __future__ import annotations

import numpy as np

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sums import weighted_mean

# Cumulative weights that differ by less than this share of the total are equal, as in the core.
_ROUNDING = 1e-12


def observed_range(y: Array, weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest value of each column of `y` that counts."""
    if weight is None or weight.ndim == 1:
        return y.min(axis=0), y.max(axis=0)
    counts = weight > 0
    return y.min(axis=0, where=counts, initial=np.inf), y.max(axis=0, where=counts, initial=-np.inf)


def weighted_variance(y: Array, weight: FloatArray | None) -> FloatArray:
    """Return the weighted variance of each column of `y`, whose squares must be within float64."""
    return weighted_mean((y - weighted_mean(y, weight)) ** 2, weight)


def weighted_quantiles(y: Array, weight: FloatArray | None, levels: FloatArray) -> FloatArray:
    """Return, for each column of `y`, the quantile of its level that the core renews leaf values with.

    Of the values in ascending order it is the first whose cumulative weight reaches level * total; where it
    equals that, everything up to the next value minimises the pinball loss, and the quantile is halfway.
    """
    quantiles = np.zeros(len(levels))
    for j, level in enumerate(levels):
        values = y[:, j]
        of_column = weight[:, j] if weight is not None and weight.ndim == 2 else weight
        quantiles[j] = _quantile(values, of_column, level)
    return quantiles


def _quantile(values: Array, weight: FloatArray | None, level: float) -> float:
    if weight is None:
        weight = np.ones(len(values))
    values, weight = values[weight > 0], weight[weight > 0]
    if len(values) == 0:
        return 0.0
    order = np.lexsort((weight, values))
    values, cumulative = values[order], np.cumsum(weight[order])
    slack = _ROUNDING * cumulative[-1]
    target = level * cumulative[-1]
    place = min(int(np.searchsorted(cumulative, target - slack)), len(values) - 1)
    flat = cumulative[place] <= target + slack and place + 1 < len(values)
    return float(0.5 * (values[place] + values[place + 1]) if flat else values[place])
