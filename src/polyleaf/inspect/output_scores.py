"""How well each output is predicted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from polyleaf.data.inputs import FloatArray
from polyleaf.data.mixed_targets import MixedCoding
from polyleaf.data.targets import TargetCoding
from polyleaf.losses import make_link
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
    return np.array([*_scores(coding, loss, raw, y, weight)])


def _scores(
    coding: TargetCoding, loss: str, raw: FloatArray, y: Any, weight: FloatArray | None
) -> Iterator[float]:
    if isinstance(coding, MixedCoding):
        for group, columns, outputs in coding.slices():
            own = weight if weight is None or weight.ndim == 1 else weight[:, columns]
            codes = y[:, columns]
            yield from _scores(group.coding, group.objective, raw[:, outputs], codes, own)
        return
    prediction = make_link(loss, coding).predict(np.ascontiguousarray(raw))
    levels = (None,) if coding.levels is None else coding.levels
    for output in range(coding.n_outputs):
        column = 0 if coding.kind == "multiclass" else output // len(levels)
        own = weight if weight is None or weight.ndim == 1 else np.ascontiguousarray(weight[:, column])
        if own is not None and not own.any():
            name = coding.columns_of_outputs()[output]
            raise ValueError(f"y holds no observation of {name!r}: it is missing, or has weight 0.")
        truth = _column(y, column)
        if coding.kind == "multiclass":
            truth = (truth == output).astype(np.float64)
        level = levels[output % len(levels)]
        own_prediction = prediction[:, output : output + 1]
        if level is None:
            yield r2(truth, own_prediction, own)
        else:
            yield d2_pinball(truth, own_prediction, own, (level,))


def _column(y: Any, column: int) -> FloatArray:
    """Return a column of coded targets, of shape (rows, 1)."""
    if scipy.sparse.issparse(y):
        labels: Any = y
        dense: FloatArray = labels[:, [column]].toarray().astype(np.float64)
        return dense
    values: FloatArray = y[:, np.newaxis] if y.ndim == 1 else y[:, column : column + 1]
    return values
