"""How good predicted probabilities are, and how many classes or labels are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sums import weighted_mean
from polyleaf.metrics.average import mean_of_rows, row_weights

# Keeps the logarithm of a probability finite.
_SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)


def _within(values: FloatArray, least: float, most: float) -> FloatArray:
    """Return what `np.clip` does, without its checks: of a small table they take longer."""
    within: FloatArray = np.minimum(np.maximum(values, least), most)
    return within


def softmax_cross_entropy(y: Array, prediction: FloatArray) -> FloatArray:
    """Return the cross entropy of each row; y holds the codes of its class."""
    of_label = prediction[np.arange(len(y)), y]
    loss: FloatArray = -np.log(_within(of_label, _SMALLEST_PROBABILITY, 1.0))
    return loss


def binary_cross_entropy(y: Array, prediction: FloatArray) -> FloatArray:
    """Return the cross entropy of each cell."""
    p = _within(prediction, _SMALLEST_PROBABILITY, 1 - _SMALLEST_PROBABILITY)
    return np.asarray(-np.log(np.where(y == 1, p, 1 - p)))


def right_class(y: Array, prediction: FloatArray) -> FloatArray:
    """Return 1 for each row whose class is the most probable one, else 0."""
    right: npt.NDArray[np.bool_] = prediction.argmax(axis=1) == y
    return right.astype(np.float64)


def labels_accuracy(y: Any, prediction: Any, weight: FloatArray | None) -> float:
    """Return the share of rows whose labels, as far as they were observed, are all right."""
    if weight is None or weight.ndim == 1:
        return mean_of_rows(_right_labels, y, prediction, weight)
    right = (((prediction > 0.5) == (y == 1)) | (weight == 0)).all(axis=1)
    return float(weighted_mean(right, row_weights(weight)))


def _right_labels(y: Array, prediction: FloatArray) -> FloatArray:
    right: npt.NDArray[np.bool_] = ((prediction > 0.5) == (y == 1)).all(axis=1)
    return right.astype(np.float64)
