"""Values of the losses of regression, cell by cell: what the metrics of the same name average."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from polyleaf.data.inputs import Array, FloatArray


def pinball_values(y: Array, prediction: FloatArray, levels: tuple[float, ...]) -> FloatArray:
    """Return the pinball loss; with m levels, target j is predicted by columns j m ... (j + 1) m - 1."""
    level = np.tile(np.array(levels), y.shape[1])
    error = np.repeat(y, len(levels), axis=1) - prediction
    return np.asarray(np.maximum(level * error, (level - 1) * error))


def huber_values(y: Array, prediction: FloatArray, delta: float) -> FloatArray:
    """Return Huber's loss."""
    error = np.abs(y - prediction)
    near = np.minimum(error, delta)
    return np.asarray(near * (error - 0.5 * near))


def deviance_values(y: Array, prediction: FloatArray, power: float) -> FloatArray:
    """Return the unit deviance of Tweedie's family: power 1 is Poisson's, 2 the gamma distribution's."""
    if power == 1:
        return np.asarray(2 * (xlogy(y, y / prediction) - y + prediction))
    if power == 2:
        y = np.where(y > 0, y, prediction)  # where a target was not observed, any finite number will do
        return np.asarray(2 * (np.log(prediction / y) + y / prediction - 1))
    # Divided by prediction^(2 - power), so that no size of target overflows.
    ratio = y / prediction
    terms = ratio ** (2 - power) / ((1 - power) * (2 - power)) - ratio / (1 - power) + 1 / (2 - power)
    return np.asarray(2 * prediction ** (2 - power) * terms)
