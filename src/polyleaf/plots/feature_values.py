"""The values of features as a model reads them: numbers, and the codes of categories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.inspect.named_trees import NamedTrees
from polyleaf.plots.labels import number, short


def feature_values(model: Any, X: Any, features: Sequence[int]) -> FloatArray:
    """Return some columns of a table, float64 of shape (rows, features); NaN is missing or unseen."""
    parts = []
    for table, _ in model._tables(X):
        columns: Any = table[:, list(features)]
        dense = columns if isinstance(columns, np.ndarray) else columns.toarray()
        parts.append(np.asarray(dense, dtype=np.float64))
    return np.concatenate(parts)


def said(names: NamedTrees, feature: int, value: float) -> str:
    """Return a feature and its value as one would write them: "area = 12", "heating = pump"."""
    if np.isnan(value):
        text = "missing"
    elif feature in names.model.categories:
        text = short(names.model.categories[feature].values[int(value)], 12)
    else:
        text = number(value)
    return f"{short(names.features[feature], 31 - len(text) - 3)} = {text}"
