"""Huber's loss: a parabola near the target, lines further away."""

from __future__ import annotations

import numpy as np

from polyleaf import _core
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sums import column_quantiles
from polyleaf.losses.base import Loss
from polyleaf.losses.formula import Formula
from polyleaf.losses.huber_minimum import huber_minimum
from polyleaf.losses.units import squares_of_units, units_of_residuals
from polyleaf.losses.weighted import observed_range, weighted_variance

# Of a row within delta where most are far outside: it counts as so many of them, and cannot hold its leaf.
_LARGEST_CURVATURE = 32.0
_LARGEST_FACTOR = 1e300
_SMALLEST_VARIANCE = 1e-200


class Huber(Loss):
    """l(f, y) = r^2 / 2 where |r| = |f - y| <= delta, delta (|r| - delta / 2) beyond.

    The gradient is r, cut off at +-delta. The Hessian is min(1, delta / |r|), the curvature of the parabola
    that touches the loss from above (iteratively reweighted least squares): a step never goes too far, and
    is of the size of the residuals even where delta is small. Both are multiplied by the mean of
    max(1, |r| / delta) at the base score, so that an ordinary row has a Hessian of about 1 and `reg_lambda`
    counts rows, whatever delta is. With a large delta this factor is 1, and the loss the squared error.
    """

    name = "huber"
    meaning = "squared error near the target, absolute error further away (`huber_delta`)"
    kinds = ("regression",)
    link = "identity"
    parameters = ("huber_delta",)
    default_metric = "huber"
    compiled = True

    def __init__(self, n_outputs: int, huber_delta: float = 1.0) -> None:
        super().__init__(n_outputs)
        self._delta = float(huber_delta)
        self._unit = np.ones(n_outputs)
        self._factor = np.ones(n_outputs)

    def base_score(self, y: Array, weight: FloatArray | None) -> FloatArray:
        """Return the minimum of the weighted loss of each target."""
        return huber_minimum(y, weight, self._delta)

    def scales(
        self, y: Array, weight: FloatArray | None, base: FloatArray, scale_targets: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return units near the largest residual, and the inverse variance of the gradient at the base."""
        least, most = observed_range(y, weight)
        self._unit = units_of_residuals(least, most, base)
        residual = base - y
        clipped = np.clip(residual, -self._delta, self._delta)
        with np.errstate(over="ignore"):
            distance = np.maximum(1.0, np.minimum(np.abs(residual) / self._delta, _LARGEST_FACTOR))
        # The median: a few outliers, however far, are not to make everybody else's steps longer.
        ordinary = column_quantiles(distance, weight, np.full(self.n_outputs, 0.5))
        self._factor = np.maximum(1.0, ordinary)
        if not scale_targets:
            return self._unit, squares_of_units(self._unit) / self._factor
        variance = weighted_variance(clipped / self._unit * self._factor, weight)
        constant = (least == most) | (variance < _SMALLEST_VARIANCE)
        return self._unit, np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, variance))

    def formula(self, y: Array) -> Formula:
        """Return the residual cut off at +-delta, and min(1, delta / |residual|)."""
        return _core.Huber(y, self._unit, self._factor, self._delta, _LARGEST_CURVATURE)

    def predict(self, raw: FloatArray, n_threads: int = 1) -> FloatArray:
        """Return the raw scores."""
        return raw
