"""Binary cross entropy, for two classes or several labels."""

from __future__ import annotations

import numpy as np

from polyleaf import _core
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sums import weighted_mean
from polyleaf.losses.base import RAREST_SHARE, Gradients, OnTheWay
from polyleaf.losses.one_pass import OnePassLoss


class BinaryCrossEntropy(OnePassLoss):
    """l(f, y) = log(1 + e^f) - y f for each label: gradient p - y, Hessian p(1 - p)."""

    name = "binary_cross_entropy"
    default_metric = "binary_cross_entropy"
    hessian_rule = "p(1-p)"

    def base_score(self, y: Array, weight: FloatArray | None) -> FloatArray:
        """Return the log-odds of each label."""
        share = weighted_mean(y, weight)
        share = np.clip(share, RAREST_SHARE, 1.0 - RAREST_SHARE)
        return np.asarray(np.log(share) - np.log1p(-share), dtype=np.float64)

    def _pass(
        self, y: Array, raw: FloatArray, n_threads: int, also: OnTheWay, with_hessian: bool
    ) -> Gradients:
        gradient = self._workspace("gradient", raw.shape)
        hessian = self._workspace("hessian", raw.shape) if with_hessian else None
        _core.logistic(raw, y, gradient, hessian, n_threads, *also)
        return gradient, hessian

    def predict(self, raw: FloatArray, n_threads: int = 1) -> FloatArray:
        """Return the probability of each label."""
        probability: FloatArray = np.empty(raw.shape)
        _core.logistic_probabilities(raw, probability, n_threads)
        return probability
