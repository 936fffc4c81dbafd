"""Half the squared error, for one or several targets."""

from __future__ import annotations

import numpy as np

from polyleaf import _core
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.losses.base import Gradients, Loss, Workspace

# Residuals within these powers of two are kept as they are; far larger or smaller ones are expressed in a
# power of two, so that float32 gradients and leaf values hold them.
_ORDINARY_EXPONENT = 40
_SMALLEST_VARIANCE = 1e-200


class SquaredError(Loss):
    """l(f, y) = (f - y)^2 / 2 for each target: gradient f - y, Hessian 1."""

    name = "squared_error"
    default_metric = "rmse"

    def __init__(self, n_outputs: int) -> None:
        super().__init__(n_outputs)
        self._workspace = Workspace()
        self._unit = np.ones(n_outputs)

    def base_score(self, y: Array, weight: FloatArray | None) -> FloatArray:
        """Return the weighted mean of each target."""
        return _mean(y, weight)

    def scales(
        self, y: Array, weight: FloatArray | None, base: FloatArray, scale_targets: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return units near the largest residual (1 for ordinary targets), and weights 1 / var(y)."""
        least, most = _range(y, weight)
        half = np.maximum(np.abs(most / 2 - base / 2), np.abs(least / 2 - base / 2))
        exponent = np.frexp(half)[1] + 1
        ordinary = (np.abs(exponent) <= _ORDINARY_EXPONENT) | (half == 0)
        self._unit = np.where(ordinary, 1.0, np.ldexp(1.0, np.clip(exponent, -1000, 1000)))
        if not scale_targets:
            largest = self._unit.max()
            # In the square of the targets' own unit, as far as float64 reaches.
            return self._unit, (self._unit / largest) ** 2 * np.clip(largest, 2.0**-300, 2.0**300) ** 2
        mean = _mean(y, weight) / self._unit
        variance = _mean((y / self._unit - mean) ** 2, weight)
        # No split can tell the rows of a constant target apart; its variance may still be a rounding error.
        constant = (most == least) | (variance < _SMALLEST_VARIANCE)
        return self._unit, np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, variance))

    def gradients(self, y: Array, raw: FloatArray, n_threads: int) -> Gradients:
        """Return f - y; the Hessian is 1."""
        gradient = self._workspace("gradient", raw.shape)
        _core.squared_error(raw, y, self._unit, gradient, n_threads)
        return gradient, None

    def predict(self, raw: FloatArray) -> FloatArray:
        """Return the raw scores."""
        return raw


def _range(y: Array, weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest of each target's values that count."""
    if weight is None or weight.ndim == 1:
        return y.min(axis=0), y.max(axis=0)
    counts = weight > 0
    return y.min(axis=0, where=counts, initial=np.inf), y.max(axis=0, where=counts, initial=-np.inf)


def _mean(y: Array, weight: FloatArray | None) -> FloatArray:
    share = None if weight is None else weight / weight.sum(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.mean(y, axis=0) if share is None else _sums(share, y)
    if not np.isfinite(mean).all():  # the sum left the range of float64
        mean = np.mean(y / len(y), axis=0) * len(y) if share is None else _sums(share / 2, y) * 2
    return np.asarray(mean, dtype=np.float64)


def _sums(share: FloatArray, y: Array) -> FloatArray:
    return np.asarray(share @ y if share.ndim == 1 else np.einsum("ij,ij->j", share, y))
