"""F1, the harmonic mean of precision and recall, of all classes or labels together or of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sums import column_sums, group_sums
from polyleaf.metrics.average import cells_of, column_blocks, row_weights, shares

Average = Literal["micro", "macro"]


def f1_of_labels(average: Average, y: Any, prediction: Any, weight: FloatArray | None) -> float:
    """Return F1 of several labels; a label that is nowhere true nor predicted counts 0 in the mean."""
    counts, weight = _Counts.zeros(prediction.shape[1]), shares(weight)
    for columns, some_y, some_prediction in column_blocks(y, prediction):
        truth, said = some_y == 1, some_prediction > 0.5
        cells = cells_of(weight, columns)
        for sums, marked in ((counts.right, truth & said), (counts.true, truth), (counts.predicted, said)):
            sums[columns] = column_sums(marked.astype(np.float32), cells)
    return counts.f1(average, np.ones(len(counts.true), dtype=bool))


def f1_of_classes(average: Average, y: Array, prediction: FloatArray, weight: FloatArray | None) -> float:
    """Return F1 of classes; the mean is that of the classes that some row has or is predicted to have."""
    return _f1_of_codes(average, y, prediction.argmax(axis=1), prediction.shape[1], weight)


def f1_of_two_classes(average: Average, y: Array, prediction: FloatArray, weight: FloatArray | None) -> float:
    """Return F1 of two classes, both of which count."""
    return _f1_of_codes(average, y[:, 0] == 1, prediction[:, 0] > 0.5, 2, row_weights(weight))


def _f1_of_codes(
    average: Average, true: Array, predicted: Array, n_classes: int, weight: FloatArray | None
) -> float:
    right, weight = (true == predicted).astype(np.float64), shares(weight)
    counts = _Counts(
        group_sums(right if weight is None else right * weight, true, n_classes),
        group_sums(weight, true, n_classes),
        group_sums(weight, predicted, n_classes),
    )
    seen = group_sums(None, true, n_classes) + group_sums(None, predicted, n_classes) > 0
    return counts.f1(average, seen)


@dataclass(frozen=True)
class _Counts:
    """Weights of the rows, by class or label: predicted rightly, true, predicted."""

    right: FloatArray
    true: FloatArray
    predicted: FloatArray

    @classmethod
    def zeros(cls, n: int) -> _Counts:
        return cls(np.zeros(n), np.zeros(n), np.zeros(n))

    def f1(self, average: Average, counted: Array) -> float:
        """Return F1 of all together, or the mean over those that count; 0 where there is nothing."""
        right, both = self.right, self.true + self.predicted
        if average == "micro":
            right, both = right.sum(keepdims=True), both.sum(keepdims=True)
            counted = np.ones(1, dtype=bool)
        each = np.divide(2 * right, both, out=np.zeros(len(both)), where=both > 0)
        return float(each[counted].mean())
