"""The absolute error, for one or several targets: medians."""

from __future__ import annotations

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.losses.quantile import Quantile


class AbsoluteError(Quantile):
    """l(f, y) = |f - y| for each target: gradient -1, 0 or 1, leaf values are medians of the residuals."""

    name = "absolute_error"
    meaning = "the median"
    link = "identity"
    parameters = ()
    default_metric = "mae"

    def __init__(self, n_outputs: int) -> None:
        super().__init__(n_outputs, 0.5)

    @staticmethod
    def _slopes(levels: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.ones(len(levels)), np.ones(len(levels))
