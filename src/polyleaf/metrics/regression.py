"""How far predicted numbers are from the targets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.float_arrays import as_float64
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.row_weights import check_weights
from polyleaf.data.sums import any_of_columns, column_range, weighted_mean
from polyleaf.metrics.average import BLOCK_CELLS, mean_of_cells, mean_of_columns
from polyleaf.metrics.metric import Measure
from polyleaf.params.wording import TargetWords

# Squares of numbers within these powers of two, and of their differences down to the last bit, are far from
# the ends of float64.
_ORDINARY_EXPONENT = 256
# Squares of numbers within these can be told, and of errors that are some powers of two smaller.
_MOST_OF_SQUARES = 480


def rmse_per_output(y: object, prediction: object, weight: object = None) -> FloatArray:
    """Return the root of the mean squared error of each output.

    Parameters
    ----------
    y, prediction : array-like of shape (n_rows,) or (n_rows, n_outputs)
        The targets, and what was predicted for them.
    weight : array-like of shape (n_rows,), default=None
        Row weights.

    Returns
    -------
    ndarray of shape (n_outputs,)

    Examples
    --------
    >>> rmse_per_output([[0, 0], [0, 4]], [[1, 0], [1, 0]])
    array([1.        , 2.82842712])
    """
    targets, predicted = as_float64(y, "y"), as_float64(prediction, "prediction")
    if targets.shape != predicted.shape or targets.ndim not in (1, 2) or len(targets) == 0:
        raise ValueError(
            f"y has shape {targets.shape} and prediction {predicted.shape}; both must have the same rows and "
            "columns, and at least one row."
        )
    weights = check_weights(weight, len(targets), "weight")
    squared: FloatArray = np.atleast_1d(weighted_mean((targets - predicted) ** 2, weights))
    return np.sqrt(squared)


def squared_error(y: Array, prediction: FloatArray) -> FloatArray:
    """Return the squared error of each cell."""
    return np.asarray((y - prediction) ** 2)


def absolute_error(y: Array, prediction: FloatArray) -> FloatArray:
    """Return the absolute error of each cell."""
    return np.abs(y - prediction)


def relative_error(y: Array, prediction: FloatArray) -> FloatArray:
    """Return the absolute error of each cell as a share of the target, which counts as at least 2.2e-16."""
    return np.abs(y - prediction) / np.maximum(np.abs(y), np.finfo(np.float64).eps)


def rmse_of(y: Any, weight: FloatArray | None) -> Measure:
    """Return the root of the mean squared error of all cells, of predictions of `y`."""
    unit = float(_units_near(_sizes(y).max()))
    if unit == 1 and y.size <= BLOCK_CELLS and (weight is None or weight.ndim == 1):
        # The same for a few cells, without a look at how they come.
        return lambda prediction: math.sqrt(weighted_mean(mean_of_columns((y - prediction) ** 2), weight))

    def of_cells(y: Array, prediction: FloatArray) -> FloatArray:
        return squared_error(y, prediction) if unit == 1 else squared_error(y / unit, prediction / unit)

    return lambda prediction: unit * math.sqrt(mean_of_cells(of_cells, y, prediction, weight))


def rmse(y: Any, prediction: Any, weight: FloatArray | None) -> float:
    """Return the root of the mean squared error of all cells; see `rmse_of`."""
    return rmse_of(y, weight)(prediction)


def check_squares(y: Any, weight: FloatArray | None, words: TargetWords) -> None:
    """Raise where the mean squared error has no room in float64, as it has no unit to be told in."""
    size = float(_sizes(y).max())
    if abs(int(np.frexp(size)[1])) > _MOST_OF_SQUARES:
        raise ValueError(
            f"eval_metric 'mse': the largest number of {words.name} is {size:.3g} in size; squares of its "
            "like are beyond float64; take 'rmse'."
        )


def _sizes(y: Any) -> FloatArray:
    """Return the size of the largest number of each column."""
    least, most = column_range(y)
    return np.maximum(most, -least)


def _units_near(sizes: FloatArray) -> FloatArray:
    """Return powers of two near some sizes; 1 for ordinary ones.

    Squares in these units neither overflow nor vanish, and all else keeps its bits.
    """
    exponent = np.frexp(sizes)[1]  # 0 of 0, and where there are no rows
    exponent = np.where(np.abs(exponent) <= _ORDINARY_EXPONENT, 0, exponent)
    return np.asarray(np.ldexp(1.0, np.clip(exponent, -1000, 1000)))


def r2_of(y: Any, weight: FloatArray | None) -> Measure:
    """Return the mean over the targets of R2, the coefficient of determination, of predictions of `y`.

    That of a target that does not vary is 1 where all predictions are right, else 0.
    """
    unexplained = _Unexplained(y, weight)
    return lambda prediction: _mean_of_targets(1 - unexplained(prediction))


def r2(y: Any, prediction: Any, weight: FloatArray | None) -> float:
    """Return the mean over the targets of R2; see `r2_of`."""
    return r2_of(y, weight)(prediction)


def rrmse_of(y: Any, weight: FloatArray | None) -> Measure:
    """Return the mean over the targets of RMSE / standard deviation of the target: no unit counts.

    That of a target that does not vary is 0 where all predictions are right, else 1.
    """
    unexplained = _Unexplained(y, weight)
    return lambda prediction: _mean_of_targets(np.sqrt(unexplained(prediction)))


def rrmse(y: Any, prediction: Any, weight: FloatArray | None) -> float:
    """Return the mean over the targets of RMSE / standard deviation of the target; see `rrmse_of`."""
    return rrmse_of(y, weight)(prediction)


def _mean_of_targets(values: FloatArray) -> float:
    """Return the mean of a few numbers: what `mean` does, without its checks."""
    return float(np.add.reduce(values) / len(values))


class _Unexplained:
    """The mean squared error of each target as a share of its variance.

    Parameters
    ----------
    y : float64 ndarray of shape (rows, targets)
        The targets.
    weight : float64 ndarray of shape (rows,) or (rows, targets), or None
        Of rows or cells.
    """

    def __init__(self, y: Any, weight: FloatArray | None) -> None:
        self._observed: npt.NDArray[np.bool_] | None = None  # None: all
        if weight is not None and weight.ndim == 2:
            observed = any_of_columns(weight > 0)  # a target may have no observation in an evaluation set
            if not observed.all():
                self._observed = observed
                y, weight = y[:, observed], weight[:, observed]
        unit = _units_near(_sizes(y))
        self._unit = None if np.all(unit == 1) else unit
        y = self._in_units(y)
        self._y, self._weight = y, weight
        variance = weighted_mean((y - weighted_mean(y, weight)) ** 2, weight)
        self._constant = variance == 0
        self._any_constant = bool(self._constant.any())
        self._variance = np.where(self._constant, 1, variance)

    def __call__(self, prediction: Any) -> FloatArray:
        if self._observed is not None:
            prediction = prediction[:, self._observed]
        residual = weighted_mean((self._y - self._in_units(prediction)) ** 2, self._weight)
        share: FloatArray = residual / self._variance
        return np.where(self._constant, residual != 0, share) if self._any_constant else share

    def _in_units(self, values: FloatArray) -> FloatArray:
        return values if self._unit is None else values / self._unit
