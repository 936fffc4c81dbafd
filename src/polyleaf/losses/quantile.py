"""The pinball loss: quantiles of one or several targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from polyleaf import _core
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sums import column_quantiles
from polyleaf.losses.base import Loss
from polyleaf.losses.formula import Formula
from polyleaf.losses.units import units_of_residuals
from polyleaf.losses.weighted import observed_range
from polyleaf.params.objectives import Link


class Quantile(Loss):
    """l(f, y) = level * (y - f) where f is too low, (1 - level) * (f - y) where it is too high.

    With m levels output j predicts level j % m of target j // m. The gradient is a step and the Hessian says
    nothing: splits are found with a Hessian of 1, and leaf values are quantiles of the residuals.
    """

    name = "quantile"
    meaning = "quantiles of each target (`quantile_levels`)"
    kinds = ("regression",)
    link: ClassVar[Link] = "quantiles"
    parameters: ClassVar[tuple[str, ...]] = ("quantile_levels",)
    default_metric = "quantile"
    unit_hessian = True
    compiled = True

    def __init__(self, n_outputs: int, quantile_levels: float | Sequence[float] = 0.5) -> None:
        super().__init__(n_outputs)
        levels = np.atleast_1d(np.asarray(quantile_levels, dtype=np.float64))
        self._n_levels = len(levels)
        self.leaf_levels: FloatArray = np.tile(levels, n_outputs // len(levels))
        self._above, self._below = self._slopes(self.leaf_levels)

    @staticmethod
    def _slopes(levels: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the slopes of the loss above and below the target."""
        return 1.0 - levels, levels

    def target_columns(self) -> npt.NDArray[np.int32]:
        """Return the target of each output."""
        return (np.arange(self.n_outputs) // self._n_levels).astype(np.int32)

    def base_score(self, y: Array, weight: FloatArray | None) -> FloatArray:
        """Return the weighted quantiles of each target."""
        return column_quantiles(y[:, self.target_columns()], weight, self.leaf_levels)

    def scales(
        self, y: Array, weight: FloatArray | None, base: FloatArray, scale_targets: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return units near the largest residual, and the inverse variance of each output's gradient.

        Gradients do not depend on the size of a target; with `scale_targets` the levels are on a par, too.
        """
        unit = units_of_residuals(*observed_range(y[:, self.target_columns()], weight), base)
        return unit, 1.0 / (self._above * self._below) if scale_targets else np.ones(self.n_outputs)

    def formula(self, y: Array) -> Formula:
        """Return the slope of the loss, 0 where the score is right; the Hessian is 1."""
        return _core.Pinball(y, self.target_columns(), self._above, self._below)

    def predict(self, raw: FloatArray, n_threads: int = 1) -> FloatArray:
        """Return the scores, those of each target in ascending order, so that quantiles never cross.

        For no row does that raise the sum of its losses.
        """
        if self._n_levels == 1:
            return raw
        blocks = raw.reshape(len(raw), raw.shape[1] // self._n_levels, self._n_levels)
        return np.sort(blocks, axis=2).reshape(raw.shape)
