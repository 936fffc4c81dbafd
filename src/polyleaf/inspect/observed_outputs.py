"""What is predicted of each output beside what was observed of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from polyleaf.data.inputs import FloatArray
from polyleaf.data.mixed_targets import MixedCoding
from polyleaf.data.targets import TargetCoding
from polyleaf.losses import make_link


@dataclass(frozen=True)
class ObservedOutput:
    """One output of some rows.

    Attributes
    ----------
    name : str
        Of the output.
    truth, prediction : float64 ndarray of shape (rows, 1)
        The number itself; of a class or label 0 or 1, and its probability.
    weight : float64 ndarray of shape (rows,) or None
        0 where nothing was observed.
    level : float or None
        Which quantile is predicted; None: no quantile.
    """

    name: str
    truth: FloatArray
    prediction: FloatArray
    weight: FloatArray | None
    level: float | None


def observed_outputs(
    coding: TargetCoding, loss: str, raw: FloatArray, y: Any, weight: FloatArray | None
) -> Iterator[ObservedOutput]:
    """Yield the outputs one by one, in the order of the outputs; parameters as in `output_scores`."""
    if isinstance(coding, MixedCoding):
        for group, columns, outputs in coding.slices():
            own = weight if weight is None or weight.ndim == 1 else weight[:, columns]
            codes = y[:, columns]
            yield from observed_outputs(group.coding, group.objective, raw[:, outputs], codes, own)
        return
    prediction = make_link(loss, coding).predict(np.ascontiguousarray(raw))
    levels = (None,) if coding.levels is None else coding.levels
    names = coding.columns_of_outputs()
    for output in range(coding.n_outputs):
        column = 0 if coding.kind == "multiclass" else output // len(levels)
        own = weight if weight is None or weight.ndim == 1 else np.ascontiguousarray(weight[:, column])
        truth = _column(y, column)
        if coding.kind == "multiclass":
            truth = (truth == output).astype(np.float64)
        level = levels[output % len(levels)]
        yield ObservedOutput(names[output], truth, prediction[:, output : output + 1], own, level)


def _column(y: Any, column: int) -> FloatArray:
    """Return a column of coded targets, of shape (rows, 1)."""
    if scipy.sparse.issparse(y):
        labels: Any = y
        dense: FloatArray = labels[:, [column]].toarray().astype(np.float64)
        return dense
    values: FloatArray = y[:, np.newaxis] if y.ndim == 1 else y[:, column : column + 1]
    return values
