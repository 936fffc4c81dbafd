"""The loss of GBDT-sparse: squared error that vanishes where nothing is left to say."""

from __future__ import annotations

import numpy as np

from polyleaf import _core
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.losses.base import Loss
from polyleaf.losses.formula import Formula


class ClippedSquaredError(Loss):
    """l(f, y) = max(1 - f, 0)^2 / 2 where y is 1, max(f, 0)^2 / 2 where it is 0; the Hessian counts as 1.

    A label that is 0 and has no score has no gradient: with sparse labels, scores and gradients stay sparse.
    """

    name = "clipped_squared_error"
    meaning = "that of GBDT-sparse, for several labels, also as a SciPy sparse matrix"
    kinds = ("multilabel",)
    link = "identity"
    in_groups = False
    default_metric = "top1_accuracy"
    unit_hessian = True
    compiled = True

    def base_score(self, y: Array, weight: FloatArray | None) -> FloatArray:
        """Return 0: the scores of labels that never occur stay empty."""
        return np.zeros(self.n_outputs)

    def formula(self, y: Array) -> Formula:
        """Return -max(1 - f, 0) where y is 1, max(f, 0) where it is 0; the Hessian is 1."""
        return _core.ClippedSquaredError(y)

    def predict(self, raw: FloatArray, n_threads: int = 1) -> FloatArray:
        """Return the raw scores: on the scale of the labels, but not cut off there, which keeps ranks."""
        return raw
