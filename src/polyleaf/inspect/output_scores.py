"""How well each output is predicted."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.data.targets import TargetCoding
from polyleaf.inspect.observed_outputs import ObservedOutput, observed_outputs
from polyleaf.metrics.quantiles import d2_pinball
from polyleaf.metrics.regression import r2


def output_scores(
    coding: TargetCoding, loss: str, raw: FloatArray, y: Any, weight: FloatArray | None
) -> FloatArray:
    """Return a score of each output, in the order of the outputs; 1 is best, 0 what a constant reaches.

    It is R2 of a number; of the probability of a class or label, R2 against 0 and 1 (the Brier skill score);
    of a quantile, D2, the same with the pinball loss.

    Parameters
    ----------
    coding : TargetCoding
        What the targets are.
    loss : str
        The name of the model's loss.
    raw : float64 ndarray of shape (rows, outputs)
        Raw scores.
    y : ndarray, or sparse matrix of labels
        Coded targets.
    weight : float64 ndarray of shape (rows,) or (rows, columns), or None
        0 where nothing was observed.

    Raises
    ------
    ValueError
        When nothing was observed of a target.
    """
    return np.array([_score(one) for one in observed_outputs(coding, loss, raw, y, weight)])


def _score(output: ObservedOutput) -> float:
    weight = output.weight
    if weight is not None and not weight.any():
        raise ValueError(f"y holds no observation of {output.name!r}: it is missing, or has weight 0.")
    if output.level is None:
        return r2(output.truth, output.prediction, weight)
    return d2_pinball(output.truth, output.prediction, weight, (output.level,))
