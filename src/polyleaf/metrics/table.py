"""Which metrics there are, by the kind of target, and those that a fit measures."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from polyleaf.data.inputs import Array, FloatArray, read_only
from polyleaf.losses.details import LossDetails
from polyleaf.losses.log_link import check_range
from polyleaf.losses.values import deviance_values, huber_values, pinball_values
from polyleaf.metrics.average import MetricFunction, cell_mean, row_mean
from polyleaf.metrics.classification import (
    binary_cross_entropy,
    labels_accuracy,
    right_class,
    softmax_cross_entropy,
)
from polyleaf.metrics.ranking import NDCG, PRECISION, AtK, check_k
from polyleaf.metrics.regression import absolute_error, r2, rmse, squared_error
from polyleaf.params.combinations import refused
from polyleaf.params.objectives import TargetKind
from polyleaf.params.rules import metric_family
from polyleaf.params.situation import Situation

if TYPE_CHECKING:
    from polyleaf.metrics.average import CsrMatrix


@dataclass(frozen=True)
class Metric:
    """A named function of coded targets, predictions (probabilities for a classifier) and weights.

    Targets and predictions of several labels may be SciPy CSR matrices.

    Attributes
    ----------
    name : str
        Its key in ``evals_result_``.
    greater_is_better : bool
        Which way early stopping looks.
    function : callable (y, prediction, weight) -> float
        `weight` is None, of shape (rows,), or of shape (rows, outputs): a cell of weight 0 was not observed.
    takes_weight : bool
        Whether it makes use of weights; a callable of the user's does if it has an argument `sample_weight`.
    check_targets : callable (y, weight, name) or None
        Raises ValueError, calling y by `name`, where the metric is not defined.
    """

    name: str
    greater_is_better: bool
    function: MetricFunction
    takes_weight: bool = True
    check_targets: Callable[[Array, FloatArray | None, str], None] | None = None


def make_metrics(
    eval_metric: str | Callable[..., Any] | Sequence[str | Callable[..., Any]] | None,
    *,
    default: str,
    kind: TargetKind,
    n_labels: int | None = None,
    details: LossDetails | None = None,
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
    n_labels : int or None, default=None
        Number of classes or labels. None: whether there are k of them to look at is seen when measuring.
    details : LossDetails or None, default=None
        Of the metrics "huber", "quantile" and "tweedie".

    Raises
    ------
    ValueError
        For a name that does not suit the problem, the same name twice, or a k beyond `n_labels`.
    """
    if eval_metric is None:
        eval_metric = default
    wanted = [eval_metric] if isinstance(eval_metric, str) or callable(eval_metric) else list(eval_metric)
    details = details or LossDetails()
    metrics = [_custom(one) if callable(one) else _named(one, kind, n_labels, details) for one in wanted]
    names = [metric.name for metric in metrics]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"eval_metric has {name!r} more than once; the names must differ.")
    return metrics


def _named(name: str, kind: TargetKind, n_labels: int | None, details: LossDetails) -> Metric:
    table = _METRICS[kind]
    family, k = metric_family(name)
    found = table.get(family)
    if found is None or isinstance(found, AtK) != (k is not None):
        numbered = " with a number for k" if any(isinstance(one, AtK) for one in table.values()) else ""
        allowed = {"allowed": f"{', '.join(table)}{numbered}"}
        raise refused(Situation({"eval_metric": name}, kind=kind, unsuited="eval_metric", words=allowed))
    if isinstance(found, AtK):
        assert k is not None
        if n_labels is not None:
            check_k(k, n_labels, f"eval_metric {name!r}")
        found = found.metric(k, f"eval_metric {name!r}")
    if isinstance(found, _WithDetails):
        found = found.metric(details)
    check = partial(check_range, name) if name in _DEVIANCES else None
    return Metric(name, family in _GREATER_IS_BETTER, found, check_targets=check)


def _shielded(values: Array | CsrMatrix) -> Array | CsrMatrix:
    """Return dense values as a view that cannot be written to: they may be the user's own."""
    return read_only(values) if isinstance(values, np.ndarray) else values


def _custom(function: Callable[..., Any]) -> Metric:
    name = getattr(function, "__name__", type(function).__name__)
    try:
        takes_weight = "sample_weight" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # a builtin without a signature
        takes_weight = False

    def measured(
        y: Array | CsrMatrix, prediction: FloatArray | CsrMatrix, weight: FloatArray | None
    ) -> float:
        weights = {"sample_weight": weight} if takes_weight and weight is not None else {}
        value = function(_shielded(y), _shielded(prediction), **weights)
        try:
            return float(value)
        except (TypeError, ValueError) as error:
            raise TypeError(f"eval_metric {name!r} must return a number; got {value!r}.") from error

    return Metric(name, False, measured, takes_weight)


# --- the table ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _WithDetails:
    """A metric that is the mean over rows and outputs of a loss with parameters."""

    of_cells: Callable[[Array, FloatArray, LossDetails], FloatArray]

    def metric(self, details: LossDetails) -> MetricFunction:
        return cell_mean(lambda y, prediction: self.of_cells(y, prediction, details))


def _one_minus(function: MetricFunction) -> MetricFunction:
    return lambda y, prediction, weight: 1 - function(y, prediction, weight)


def _classification(
    cross_entropy_name: str, cross_entropy: MetricFunction, accuracy: MetricFunction
) -> dict[str, MetricFunction]:
    return {
        cross_entropy_name: cross_entropy,
        "log_loss": cross_entropy,
        "accuracy": accuracy,
        "error": _one_minus(accuracy),
    }


_CLASS_METRICS = _classification("cross_entropy", row_mean(softmax_cross_entropy), row_mean(right_class))
_LABEL_METRICS = _classification("binary_cross_entropy", cell_mean(binary_cross_entropy), labels_accuracy)
_AT_K = {"precision@k": PRECISION, "ndcg@k": NDCG}
_DEVIANCES = {
    "poisson": _WithDetails(lambda y, prediction, details: deviance_values(y, prediction, 1)),
    "gamma": _WithDetails(lambda y, prediction, details: deviance_values(y, prediction, 2)),
    "tweedie": _WithDetails(
        lambda y, prediction, details: deviance_values(y, prediction, details.tweedie_power)
    ),
}
_METRICS: dict[TargetKind, dict[str, MetricFunction | AtK | _WithDetails]] = {
    "regression": {
        "rmse": rmse,
        "mse": cell_mean(squared_error),
        "mae": cell_mean(absolute_error),
        "r2": r2,
        "huber": _WithDetails(
            lambda y, prediction, details: huber_values(y, prediction, details.huber_delta)
        ),
        "quantile": _WithDetails(
            lambda y, prediction, details: pinball_values(y, prediction, details.quantile_levels)
        ),
        **_DEVIANCES,
    },
    "multiclass": {**_CLASS_METRICS, **_AT_K},
    "binary": {**_LABEL_METRICS},
    "multilabel": {**_LABEL_METRICS, "top1_accuracy": PRECISION.metric(1, "top1_accuracy"), **_AT_K},
}
_GREATER_IS_BETTER = frozenset({"accuracy", "r2", "top1_accuracy", *_AT_K})
