"""Binary cross entropy, for two classes or several labels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from polyleaf import _core
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.losses.base import RAREST_SHARE, Gradients, Loss, Workspace


class BinaryCrossEntropy(Loss):
    """l(f, y) = log(1 + e^f) - y f for each label: gradient p - y, Hessian p(1 - p)."""

    name = "binary_cross_entropy"
    default_metric = "binary_cross_entropy"
    hessian_rule = "p(1-p)"

    def __init__(self, n_outputs: int) -> None:
        super().__init__(n_outputs)
        self._workspace = Workspace()

    def base_score(self, y: Array, weight: FloatArray | None) -> FloatArray:
        """Return the log-odds of each label."""
        share = np.asarray(np.average(y, axis=0, weights=weight), dtype=np.float64)
        share = np.clip(share, RAREST_SHARE, 1.0 - RAREST_SHARE)
        return np.asarray(np.log(share) - np.log1p(-share), dtype=np.float64)

    def gradients(self, y: Array, raw: FloatArray, n_threads: int) -> Gradients:
        """Return p - y and p(1 - p)."""
        return self._computed(y, raw, n_threads, with_hessian=True)

    def gradient(self, y: Array, raw: FloatArray, n_threads: int) -> npt.NDArray[np.float32]:
        """Return p - y."""
        return self._computed(y, raw, n_threads, with_hessian=False)[0]

    def gradients_after(
        self, tree: _core.TreeOfRows, y: Array, raw: FloatArray, n_threads: int, *, with_hessian: bool
    ) -> Gradients:
        """Add a tree to the scores and return their gradients, in one pass."""
        return self._computed(y, raw, n_threads, tree, with_hessian=with_hessian)

    def _computed(
        self,
        y: Array,
        raw: FloatArray,
        n_threads: int,
        tree: _core.TreeOfRows | None = None,
        *,
        with_hessian: bool,
    ) -> Gradients:
        gradient = self._workspace("gradient", raw.shape)
        hessian = self._workspace("hessian", raw.shape) if with_hessian else None
        _core.logistic(raw, y, gradient, hessian, n_threads, tree)
        return gradient, hessian

    def predict(self, raw: FloatArray) -> FloatArray:
        """Return the probability of each label."""
        return np.asarray(expit(raw), dtype=np.float64)
