"""Binary cross entropy, for two classes or several labels."""

from __future__ import annotations

import numpy as np

from polyleaf import _core
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sums import weighted_mean
from polyleaf.losses.base import RAREST_SHARE, Loss
from polyleaf.losses.formula import DeviceFormula, Formula


class BinaryCrossEntropy(Loss):
    """l(f, y) = log(1 + e^f) - y f for each label: gradient p - y, Hessian p(1 - p)."""

    name = "binary_cross_entropy"
    meaning = "for two classes (one output) and for several labels"
    kinds = ("binary", "multilabel")
    link = "logistic"
    default_metric = "binary_cross_entropy"
    hessian_rule = "p(1-p)"
    compiled = True

    def base_score(self, y: Array, weight: FloatArray | None) -> FloatArray:
        """Return the log-odds of each label."""
        share = weighted_mean(y, weight)
        share = np.clip(share, RAREST_SHARE, 1.0 - RAREST_SHARE)
        return np.asarray(np.log(share) - np.log1p(-share), dtype=np.float64)

    def formula(self, y: Array) -> Formula:
        """Return p - y and p(1 - p)."""
        return _core.Logistic(y)

    def device_formula(self) -> DeviceFormula:
        """Return the same for a GPU."""
        return DeviceFormula("logistic")

    def predict(self, raw: FloatArray, n_threads: int = 1) -> FloatArray:
        """Return the probability of each label."""
        probability: FloatArray = np.empty(raw.shape)
        _core.logistic_probabilities(raw, probability, n_threads)
        return probability
