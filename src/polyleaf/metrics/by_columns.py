"""Functions of scikit-learn where single cells have weights: column by column, as they take one a row."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.metrics.average import dense
from polyleaf.params.objectives import TargetKind

# Functions of labels that are means over these; the first two unless told to average otherwise.
_OF_LABELS = frozenset({"roc_auc_score", "average_precision_score", "hamming_loss"})


def is_mean_of_columns(function: Callable[..., Any], options: Mapping[str, Any], kind: TargetKind) -> bool:
    """Return whether a function of scikit-learn, with these options, is the mean of its values by column."""
    if kind == "regression":
        takes_columns = "multioutput" in inspect.signature(function).parameters
        return takes_columns and _is(options.get("multioutput", "uniform_average"), "uniform_average")
    if kind == "multilabel":
        return function.__name__ in _OF_LABELS and _is(options.get("average", "macro"), "macro")
    return False


def refuse_cells(metric: str, weight: FloatArray, name: str) -> None:
    """Raise ValueError where the weights within a row differ; `name` is what errors call y."""
    if weight.ndim == 2 and not _same_in_row(weight):
        raise ValueError(
            f"eval_metric {metric!r} of scikit-learn, with these options, takes one weight a row, but {name} "
            "has missing values or weights of single cells; take a metric of polyleaf by its name, or a "
            "function of your own with an argument sample_weight, which gets the weights of the cells."
        )


def measured_by_columns(
    function: Callable[..., Any], y: Any, prediction: Any, sample_weight: FloatArray | None = None
) -> Any:
    """Return what a function of scikit-learn makes of the cells that have a weight.

    Where weights differ within a row, it is the mean over the columns that have any; NaN if there is none.
    """
    if sample_weight is None:
        return function(y, prediction)
    if sample_weight.ndim == 1 or _same_in_row(sample_weight):
        return _of_rows(function, y, prediction, sample_weight.reshape(len(sample_weight), -1)[:, 0])
    if y.shape != prediction.shape:  # several quantiles of each target, which the function refuses
        return function(y, prediction)
    of_columns = [
        _of_rows(function, dense(y[:, [column]])[:, 0], dense(prediction[:, [column]])[:, 0], weight)
        for column, weight in enumerate(sample_weight.T)
        if weight.any()
    ]
    return np.mean(of_columns) if of_columns else np.nan


def _of_rows(function: Callable[..., Any], y: Any, prediction: Any, weight: FloatArray) -> Any:
    """Return the value of the rows that have a weight: others would still bring their classes along."""
    seen = weight > 0
    if seen.all():
        return function(y, prediction, sample_weight=weight)
    if not seen.any():
        return np.nan
    return function(y[seen], prediction[seen], sample_weight=weight[seen])


def _same_in_row(weight: FloatArray) -> bool:
    return bool((weight == weight[:, :1]).all())


def _is(option: Any, word: str) -> bool:
    return isinstance(option, str) and option == word
