"""Half the squared error, for one or several targets."""

from __future__ import annotations

import numpy as np

from polyleaf import _core
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sums import mean_of_columns, weighted_mean
from polyleaf.losses.base import Loss
from polyleaf.losses.formula import DeviceFormula, Formula
from polyleaf.losses.units import squares_of_units, units_of_residuals
from polyleaf.losses.weighted import observed_range

_SMALLEST_VARIANCE = 1e-200


class SquaredError(Loss):
    """l(f, y) = (f - y)^2 / 2 for each target: gradient f - y, Hessian 1."""

    name = "squared_error"
    meaning = "the mean"
    kinds = ("regression",)
    link = "identity"
    default_metric = "rmse"
    relative_metric = "rrmse"
    unit_hessian = True
    compiled = True

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
        variance = mean_of_columns(
            lambda some: (y[:, some] / self.unit[some] - mean[some]) ** 2, self.n_outputs, weight
        )
        # No split can tell the rows of a constant target apart; its variance may still be a rounding error.
        constant = (most == least) | (variance < _SMALLEST_VARIANCE)
        return self.unit, np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, variance))

    def formula(self, y: Array) -> Formula:
        """Return f - y in units; the Hessian is 1."""
        return _core.SquaredError(y, self.unit)

    def device_formula(self) -> DeviceFormula:
        """Return the same for a GPU."""
        return DeviceFormula("squared_error", (self.unit,))

    def predict(self, raw: FloatArray, n_threads: int = 1) -> FloatArray:
        """Return the raw scores."""
        return raw
