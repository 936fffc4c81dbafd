"""Softmax cross entropy, for classes that exclude each other."""

from __future__ import annotations

import numpy as np

from polyleaf import _core
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sums import group_sums
from polyleaf.losses.base import RAREST_SHARE, Loss
from polyleaf.losses.formula import DeviceFormula, Formula


class CrossEntropy(Loss):
    """l(f, y) = -log softmax(f)_y: gradient p - onehot(y), Hessian by `softmax_curvature`."""

    name = "cross_entropy"
    meaning = "the softmax of classes; with two of them, over two outputs"
    kinds = ("multiclass",)
    link = "softmax"
    parameters = ("softmax_curvature",)
    class_codes = True
    compiled = True
    hessian_rule = "p(1-p)"
    default_metric = "cross_entropy"

    def __init__(self, n_outputs: int, softmax_curvature: str = "p(1-p)") -> None:
        super().__init__(n_outputs)
        self.hessian_rule = softmax_curvature

    def base_score(self, y: Array, weight: FloatArray | None) -> FloatArray:
        """Return the logarithm of each class's share."""
        share = group_sums(weight, y, self.n_outputs)
        share = share / share.sum()
        return np.asarray(np.log(np.maximum(share, RAREST_SHARE)), dtype=np.float64)

    def formula(self, y: Array) -> Formula:
        """Return p - onehot(y), and the Hessian by its rule."""
        return _core.Softmax(y, self.n_outputs, self.hessian_rule)

    def device_formula(self) -> DeviceFormula:
        """Return the same for a GPU."""
        return DeviceFormula("softmax", (_core.TERMS[self.hessian_rule],), rows_by_warps=True)

    def predict(self, raw: FloatArray, n_threads: int = 1) -> FloatArray:
        """Return the probability of each class."""
        probability: FloatArray = np.empty(raw.shape)
        _core.softmax_probabilities(raw, probability, n_threads)
        return probability
