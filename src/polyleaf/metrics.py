"""What is measured on the evaluation sets after each round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.targets import TargetKind

MetricFunction = Callable[[Array, FloatArray, FloatArray | None], float]

# Cells computed together: the temporaries of a wide prediction stay in the cache, not in memory beside it.
_BLOCK_CELLS = 1 << 16
# Keeps the logarithm of a probability finite.
_SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Metric:
    """A named function of coded targets, predictions (probabilities for a classifier) and row weights.

    Attributes
    ----------
    name : str
        Its key in ``evals_result_``.
    greater_is_better : bool
        Which way early stopping looks.
    function : callable (y, prediction, weight) -> float
        `weight` may be None.
    """

    name: str
    greater_is_better: bool
    function: MetricFunction


def make_metrics(
    eval_metric: str | Callable[..., Any] | Sequence[str | Callable[..., Any]] | None,
    *,
    default: str,
    kind: TargetKind,
) -> list[Metric]:
    """Return the metrics that `eval_metric` asks for.

    Parameters
    ----------
    eval_metric : None, str, callable or sequence of these
        As in the table of parameters.
    default : str
        The name that None stands for.
    kind : {"regression", "multiclass", "binary", "multilabel"}
        The problem.

    Raises
    ------
    ValueError
        For a name that does not suit the problem, or the same name twice.
    """
    if eval_metric is None:
        eval_metric = default
    wanted = [eval_metric] if isinstance(eval_metric, str) or callable(eval_metric) else list(eval_metric)
    metrics = [_custom(one) if callable(one) else _named(one, kind) for one in wanted]
    names = [metric.name for metric in metrics]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"eval_metric has {name!r} more than once; the names must differ.")
    return metrics


def _named(name: str, kind: TargetKind) -> Metric:
    table = _METRICS[kind]
    if name not in table:
        raise ValueError(
            f"eval_metric {name!r} is not defined for a {kind} target; allowed are {', '.join(table)}."
        )
    return Metric(name, name in _GREATER_IS_BETTER, table[name])


def _custom(function: Callable[..., Any]) -> Metric:
    name = getattr(function, "__name__", type(function).__name__)

    def measured(y: Array, prediction: FloatArray, weight: FloatArray | None) -> float:
        value = function(y, prediction)
        try:
            return float(value)
        except (TypeError, ValueError) as error:
            raise TypeError(f"eval_metric {name!r} must return a number; got {value!r}.") from error

    return Metric(name, False, measured)


# --- averages over rows ------------------------------------------------------------------------------------

RowLoss = Callable[[Array, FloatArray], FloatArray]


def _row_average(loss: RowLoss, y: Array, prediction: FloatArray, weight: FloatArray | None) -> float:
    """Average a loss of rows over the rows, a block of rows at a time."""
    n_rows, n_columns = prediction.shape
    step = max(1, _BLOCK_CELLS // n_columns)
    losses = np.empty(n_rows)
    for start in range(0, n_rows, step):
        block = slice(start, start + step)
        losses[block] = loss(y[block], prediction[block])
    return float(np.average(losses, weights=weight))


def _averaged(loss: RowLoss) -> MetricFunction:
    return lambda y, prediction, weight: _row_average(loss, y, prediction, weight)


def _squared_error(y: Array, prediction: FloatArray) -> FloatArray:
    return _mean_of_columns((y - prediction) ** 2)


def _absolute_error(y: Array, prediction: FloatArray) -> FloatArray:
    return _mean_of_columns(np.abs(y - prediction))


def _softmax_cross_entropy(y: Array, prediction: FloatArray) -> FloatArray:
    of_label = prediction[np.arange(len(y)), y]
    loss: FloatArray = -np.log(np.clip(of_label, _SMALLEST_PROBABILITY, 1.0))
    return loss


def _binary_cross_entropy(y: Array, prediction: FloatArray) -> FloatArray:
    p = np.clip(prediction, _SMALLEST_PROBABILITY, 1 - _SMALLEST_PROBABILITY)
    return _mean_of_columns(-np.log(np.where(y == 1, p, 1 - p)))


def _right_class(y: Array, prediction: FloatArray) -> FloatArray:
    right: npt.NDArray[np.bool_] = prediction.argmax(axis=1) == y
    return right.astype(np.float64)


def _right_labels(y: Array, prediction: FloatArray) -> FloatArray:
    right: npt.NDArray[np.bool_] = ((prediction > 0.5) == (y == 1)).all(axis=1)
    return right.astype(np.float64)


def _mean_of_columns(cells: FloatArray) -> FloatArray:
    mean: FloatArray = cells.mean(axis=1)
    return mean


def _rmse(y: Array, prediction: FloatArray, weight: FloatArray | None) -> float:
    return float(np.sqrt(_row_average(_squared_error, y, prediction, weight)))


def _r2(y: Array, prediction: FloatArray, weight: FloatArray | None) -> float:
    """Coefficient of determination, averaged over the targets; 1 or 0 for a target that does not vary."""
    residual = np.average((y - prediction) ** 2, axis=0, weights=weight)
    variance = np.average((y - np.average(y, axis=0, weights=weight)) ** 2, axis=0, weights=weight)
    constant = variance == 0
    explained = 1 - residual / np.where(constant, 1, variance)
    return float(np.where(constant, residual == 0, explained).mean())


def _one_minus(function: MetricFunction) -> MetricFunction:
    return lambda y, prediction, weight: 1 - function(y, prediction, weight)


def _classification(
    cross_entropy_name: str, cross_entropy: RowLoss, right: RowLoss
) -> dict[str, MetricFunction]:
    return {
        cross_entropy_name: _averaged(cross_entropy),
        "log_loss": _averaged(cross_entropy),
        "accuracy": _averaged(right),
        "error": _one_minus(_averaged(right)),
    }


_LABEL_METRICS = _classification("binary_cross_entropy", _binary_cross_entropy, _right_labels)
_METRICS: dict[TargetKind, dict[str, MetricFunction]] = {
    "regression": {
        "rmse": _rmse,
        "mse": _averaged(_squared_error),
        "mae": _averaged(_absolute_error),
        "r2": _r2,
    },
    "multiclass": _classification("cross_entropy", _softmax_cross_entropy, _right_class),
    "binary": _LABEL_METRICS,
    "multilabel": _LABEL_METRICS,
}
_GREATER_IS_BETTER = frozenset({"accuracy", "r2"})
