"""Half the squared error, for one or several targets."""

from __future__ import annotations

import numpy as np

from polyleaf import _core
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sums import weighted_mean
from polyleaf.losses.base import Gradients, OnTheWay
from polyleaf.losses.one_pass import OnePassLoss
from polyleaf.losses.units import squares_of_units, units_of_residuals
from polyleaf.losses.weighted import observed_range

_SMALLEST_VARIANCE = 1e-200


class SquaredError(OnePassLoss):
    """l(f, y) = (f - y)^2 / 2 for each target: gradient f - y, Hessian 1."""

    name = "squared_error"
    default_metric = "rmse"

    def __init__(self, n_outputs: int) -> None:
        super().__init__(n_outputs)
        self.unit = np.ones(n_outputs)

    def base_score(self, y: Array, weight: FloatArray | None) -> FloatArray:
        """Return the weighted mean of each target."""
        return weighted_mean(y, weight)

    def scales(
        self, y: Array, weight: FloatArray | None, base: FloatArray, scale_targets: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return units near the largest residual (1 for ordinary targets), and weights 1 / var(y)."""
        least, most = observed_range(y, weight)
        self.unit = units_of_residuals(least, most, base)
        if not scale_targets:
            return self.unit, squares_of_units(self.unit)
        mean = weighted_mean(y, weight) / self.unit
        variance = weighted_mean((y / self.unit - mean) ** 2, weight)
        # No split can tell the rows of a constant target apart; its variance may still be a rounding error.
        constant = (most == least) | (variance < _SMALLEST_VARIANCE)
        return self.unit, np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, variance))

    def _pass(
        self, y: Array, raw: FloatArray, n_threads: int, also: OnTheWay, with_hessian: bool
    ) -> Gradients:
        gradient = self._workspace("gradient", raw.shape)
        _core.squared_error(raw, y, self.unit, gradient, n_threads, *also)
        return gradient, None  # the Hessian is 1

    def predict(self, raw: FloatArray, n_threads: int = 1) -> FloatArray:
        """Return the raw scores."""
        return raw
