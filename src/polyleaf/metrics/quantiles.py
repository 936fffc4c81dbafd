"""How much better than constants quantiles are."""

from __future__ import annotations

import numpy as np

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sums import weighted_mean
from polyleaf.losses.quantile import Quantile
from polyleaf.losses.values import pinball_values


def d2_pinball(
    y: Array, prediction: FloatArray, weight: FloatArray | None, levels: tuple[float, ...]
) -> float:
    """Return the mean over targets and levels of D2: the share of the best constant's pinball loss saved.

    It is to quantiles what R2 is to means: 1 where all predictions are right, 0 where they are no better than
    the quantile of the target. That of a target that does not vary is 1 where all are right, else 0.

    Parameters
    ----------
    y : float64 ndarray of shape (rows, targets)
        What was observed.
    prediction : float64 ndarray of shape (rows, targets * levels)
        Levels of the first target first.
    weight : float64 ndarray of shape (rows,) or (rows, targets), or None
        Of rows or cells; a cell of weight 0 does not count.
    levels : tuple of float
        The quantiles.
    """
    cells = weight
    if weight is not None and weight.ndim == 2:
        observed = (weight > 0).any(axis=0)
        y, weight = y[:, observed], weight[:, observed]
        prediction = prediction[:, np.repeat(observed, len(levels))]
        cells = np.repeat(weight, len(levels), axis=1)
    loss = Quantile(prediction.shape[1], levels)
    best = loss.base_score(y, cells)
    left = weighted_mean(pinball_values(y, prediction, levels), cells)
    of_constant = weighted_mean(pinball_values(y, np.broadcast_to(best, prediction.shape), levels), cells)
    constant = of_constant == 0
    saved = 1 - left / np.where(constant, 1, of_constant)
    return float(np.where(constant, left == 0, saved).mean())
