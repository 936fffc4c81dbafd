"""How well scores tell the rows of a class or label from the others, by areas under curves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sums import group_sums
from polyleaf.metrics.average import MetricFunction, cells_of, column_blocks, row_weights, shares

# Of the weights of positive and of negative rows with the same score, from the lowest score to the highest.
Area = Callable[[FloatArray, FloatArray], float]


def area_of_labels(area: Area) -> MetricFunction:
    """Return the mean of an area over the labels that have positive and negative rows; NaN: there is none."""
    return lambda y, prediction, weight: _mean(area, _label_columns(y, prediction, weight))


def area_of_classes(area: Area) -> MetricFunction:
    """Return the mean over the classes, each against the rest, that some rows have and some have not."""
    return lambda y, prediction, weight: _mean(area, _class_columns(y, prediction, row_weights(weight)))


def roc_area(positive: FloatArray, negative: FloatArray) -> float:
    """Return the area under the ROC curve: how often a positive row has the higher score; ties count half."""
    below = negative.cumsum() - negative
    ranked = positive @ (below + negative / 2)
    return float(ranked / (positive.sum() * negative.sum()))


def precision_recall_area(positive: FloatArray, negative: FloatArray) -> float:
    """Return the average precision: the precision at each score, weighted by what it adds to the recall."""
    hits = positive[::-1].cumsum()
    found = hits + negative[::-1].cumsum()
    return float(positive[::-1] @ (hits / found) / hits[-1])


def _mean(area: Area, columns: Iterator[tuple[Array, FloatArray, FloatArray | None]]) -> float:
    areas = []
    for truth, score, weight in columns:
        if np.isnan(score).any():  # a callable objective may have led to it
            return float("nan")
        positive, negative = _tied_weights(truth, score, weight)
        if positive.any() and negative.any():
            areas.append(area(positive, negative))
    return float(np.mean(areas)) if areas else float("nan")


def _label_columns(
    y: Any, prediction: Any, weight: FloatArray | None
) -> Iterator[tuple[Array, FloatArray, FloatArray | None]]:
    """Yield which rows have a label, their scores, and their weights."""
    for columns, truth, score in column_blocks(y, prediction):
        cells = cells_of(weight, columns)
        for j in range(score.shape[1]):
            yield truth[:, j] == 1, score[:, j], cells if cells is None or cells.ndim == 1 else cells[:, j]


def _class_columns(
    y: Any, prediction: Any, weight: FloatArray | None
) -> Iterator[tuple[Array, FloatArray, FloatArray | None]]:
    """Yield which rows are of a class, their scores, and their weights."""
    for code in range(prediction.shape[1]):
        yield y == code, prediction[:, code], weight


def _tied_weights(
    truth: Array, score: FloatArray, weight: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Return the weights of positive and of negative rows for each score that some row has, in rising order.

    Scores that no row of any weight has are left out.
    """
    if weight is not None:
        seen = weight > 0
        truth, score, weight = truth[seen], score[seen], shares(weight[seen])
    distinct, place = np.unique(score, return_inverse=True)
    sums = group_sums(weight, 2 * place + truth, 2 * len(distinct)).reshape(-1, 2)
    return sums[:, 1], sums[:, 0]
