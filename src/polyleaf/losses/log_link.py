"""What the losses of counts and amounts share: positive predictions, the exponential of the raw score."""

from __future__ import annotations

import numpy as np

from polyleaf import _core
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.row_names import row_name
from polyleaf.data.sums import any_of_columns, weighted_mean
from polyleaf.losses.base import Loss
from polyleaf.losses.formula import Formula
from polyleaf.losses.weighted import observed_range, weighted_variance
from polyleaf.params.wording import TargetWords

# The exponential of a larger score leaves the range of float64.
LARGEST_SCORE = 700.0
# Of targets in multiples of their mean: less is rounding.
_SMALLEST_VARIANCE = 1e-24


class LogLink(Loss):
    """Half the deviance of power p between 1 and 2, of targets y >= 0 and predictions m = exp(f).

    The gradient is (m - y) / m^(p - 1), the exact Hessian ((2 - p) m + (p - 1) y) / m^(p - 1). The Hessian
    used is that, or (gradient / (f - log y)) where this is larger: then no row asks for a step past its own
    target, which Newton's method does where a prediction is far too small (Poisson) or too large (gamma).
    Targets are taken in multiples of their mean, so that neither their unit nor `reg_lambda` depends on it.
    """

    kinds = ("regression",)
    link = "exponential"
    compiled = True
    power: float

    def __init__(self, n_outputs: int) -> None:
        super().__init__(n_outputs)
        self._log_mean = np.zeros(n_outputs)

    def check_targets(
        self, y: Array, weight: FloatArray | None, words: TargetWords, *, training: bool
    ) -> None:
        """Raise naming row and target of a number out of range, or a target that is 0 everywhere."""
        check_range(self.name, y, weight, words)
        if not training:
            return
        counts = y if weight is None else y * ((weight if weight.ndim == 2 else weight[:, np.newaxis]) > 0)
        empty = ~any_of_columns(counts > 0)
        if empty.any():
            raise ValueError(
                f"{words.name} is 0 in all rows of {words.column(int(np.argmax(empty)))}; "
                f"objective={self.name!r} needs a positive sum."
            )

    def base_score(self, y: Array, weight: FloatArray | None) -> FloatArray:
        """Return the logarithm of each target's weighted mean."""
        return _log(weighted_mean(y, weight))

    def scales(
        self, y: Array, weight: FloatArray | None, base: FloatArray, scale_targets: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return 1, and the inverse variance of the gradient at the mean."""
        mean = weighted_mean(y, weight)
        self._log_mean = _log(mean)
        ones = np.ones(self.n_outputs)
        if not scale_targets:
            # What the loss of each target is in its own unit.
            return ones, np.exp(np.clip((2 - self.power) * self._log_mean, -400, 400))
        variance = weighted_variance(y / np.where(mean > 0, mean, 1.0), weight)
        least, most = observed_range(y, weight)
        constant = (least == most) | (variance < _SMALLEST_VARIANCE)
        return ones, np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, variance))

    def formula(self, y: Array) -> Formula:
        """Return gradient and Hessian of the deviance."""
        return _core.LogLink(y, self._log_mean, self.power)

    def predict(self, raw: FloatArray, n_threads: int = 1) -> FloatArray:
        """Return exp(f), which is always positive and finite."""
        prediction: FloatArray = np.exp(np.clip(raw, -LARGEST_SCORE, LARGEST_SCORE))
        return prediction


def check_range(objective: str, y: Array, weight: FloatArray | None, words: TargetWords) -> None:
    """Raise naming the first target that the deviance of this name is not defined for."""
    wrong = y <= 0 if objective == "gamma" else y < 0
    if weight is not None:
        wrong = wrong & ((weight if weight.ndim == 2 else weight[:, np.newaxis]) > 0)
    if wrong.any():
        row, target = np.argwhere(wrong)[0]
        allowed = "greater than 0" if objective == "gamma" else "at least 0"
        raise ValueError(
            f"{words.name} is {y[row, target]} in {row_name(row)} of {words.column(target)}; {objective!r} "
            f"needs targets {allowed}."
        )


def _log(mean: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.where(mean > 0, mean, 1.0)))
