"""Which metrics there are, by the kind of target, and those that a fit measures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.targets import TargetCoding
from polyleaf.losses.details import LossDetails
from polyleaf.losses.log_link import check_range
from polyleaf.losses.values import deviance_values, huber_values, pinball_values
from polyleaf.metrics.average import MetricFunction, cell_mean, row_mean
from polyleaf.metrics.callables import custom_metric
from polyleaf.metrics.classification import (
    binary_cross_entropy,
    labels_accuracy,
    right_class,
    softmax_cross_entropy,
)
from polyleaf.metrics.curves import area_of_classes, area_of_labels, precision_recall_area, roc_area
from polyleaf.metrics.f1 import f1_of_classes, f1_of_labels, f1_of_two_classes
from polyleaf.metrics.metric import Metric
from polyleaf.metrics.per_target import PerTarget
from polyleaf.metrics.propensity import propensity_scored, training_propensities
from polyleaf.metrics.ranking import NDCG, PRECISION, AtK, check_k
from polyleaf.metrics.regression import (
    absolute_error,
    check_squares,
    r2,
    r2_of,
    relative_error,
    rmse,
    rmse_of,
    rrmse,
    rrmse_of,
    squared_error,
)
from polyleaf.params.combinations import refused
from polyleaf.params.objectives import TargetKind
from polyleaf.params.rules import metric_family
from polyleaf.params.situation import Situation


@dataclass(frozen=True)
class KnownTargets:
    """What some metrics have to know of the targets, beside their kind and number.

    Attributes
    ----------
    names : sequence of str
        Of the columns of y, for metrics of single targets.
    classes : ndarray or None
        The class labels, of which targets are the codes.
    training : Any
        Coded labels or classes of the training rows, for metrics that look at how frequent they are.
    """

    names: Sequence[str] = ()
    classes: Array | None = None
    training: Any = None

    @classmethod
    def of(cls, coding: TargetCoding, training: Any) -> KnownTargets:
        """Return what a coding and the coded targets of the training rows tell."""
        # There are more names than columns where several quantiles of each target are predicted.
        names = replace(coding, levels=None).columns_of_predictions()
        return cls(names, None if coding.kind == "multilabel" else coding.classes, training)


def make_metrics(
    eval_metric: str | Callable[..., Any] | Sequence[str | Callable[..., Any]] | None,
    *,
    default: str | Sequence[str],
    kind: TargetKind,
    n_labels: int | None = None,
    details: LossDetails | None = None,
    known: KnownTargets | None = None,
) -> list[Metric]:
    """Return the metrics that `eval_metric` asks for.

    Those of single targets come first: the last metric is the one that early stopping watches.

    Parameters
    ----------
    eval_metric : None, str, callable or sequence of these
        As in the table of parameters.
    default : str or sequence of str
        What None stands for.
    kind : {"regression", "multiclass", "binary", "multilabel"}
        The problem.
    n_labels : int or None, default=None
        Number of classes or labels. None: whether there are k of them to look at is seen when measuring.
    details : LossDetails or None, default=None
        Of the metrics "huber", "quantile" and "tweedie".
    known : KnownTargets or None, default=None
        Of metrics of single targets, of "psp@k" and of scorers.

    Raises
    ------
    ValueError
        For a name that does not suit the problem, the same name twice, or a k beyond `n_labels`.
    """
    if eval_metric is None:
        eval_metric = default
    wanted = [eval_metric] if isinstance(eval_metric, str) or callable(eval_metric) else list(eval_metric)
    known = known or KnownTargets()
    make = partial(
        _named, kind=kind, n_labels=n_labels, details=details or LossDetails(), training=known.training
    )
    of_targets: list[Metric] = []
    metrics: list[Metric] = []
    for one in wanted:
        if callable(one):
            metrics.append(custom_metric(one, kind, known.classes))
            continue
        found = _found(one, kind)
        if not isinstance(found, PerTarget):
            metrics.append(make(one))
            continue
        whole = make(found.name)
        of_targets += found.metrics(whole, known.names)
        if found.name not in wanted:
            metrics.append(whole)
    names = [metric.name for metric in (*of_targets, *metrics)]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"eval_metric has {name!r} more than once; the names must differ.")
    return [*of_targets, *metrics]


def _found(name: str, kind: TargetKind) -> Any:
    """Return what the table has under a name, or raise."""
    table = _METRICS[kind]
    family, k = metric_family(name)
    found = table.get(family)
    if found is None or isinstance(found, AtK | _PropensityScored) != (k is not None):
        numbered = " with a number for k" if any(isinstance(one, AtK) for one in table.values()) else ""
        allowed = {"allowed": f"{', '.join(table)}{numbered}"}
        raise refused(Situation({"eval_metric": name}, kind=kind, unsuited="eval_metric", words=allowed))
    return found


def _named(
    name: str, *, kind: TargetKind, n_labels: int | None, details: LossDetails, training: Any
) -> Metric:
    found = _found(name, kind)
    family, k = metric_family(name)
    if k is not None:
        called = f"eval_metric {name!r}"
        if n_labels is not None:
            check_k(k, n_labels, called)
        if isinstance(found, _PropensityScored):
            found = found.metric(training, n_labels, k, called)
        else:
            found = found.metric(k, called)
    if isinstance(found, _WithDetails):
        found = found.metric(details)
    check = check_squares if name == "mse" else partial(check_range, name) if name in _DEVIANCES else None
    return Metric(
        name,
        family in _GREATER_IS_BETTER,
        found,
        check_targets=check,
        merges=family in _MEANS_OF_ROWS,
        of_targets=_OF_TARGETS.get(name),
    )


# --- the table ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _WithDetails:
    """A metric that is the mean over rows and outputs of a loss with parameters."""

    of_cells: Callable[[Array, FloatArray, LossDetails], FloatArray]

    def metric(self, details: LossDetails) -> MetricFunction:
        return cell_mean(lambda y, prediction: self.of_cells(y, prediction, details))


@dataclass(frozen=True)
class _PropensityScored:
    """Precision at k, by the propensities of the training labels."""

    def metric(self, training: Any, n_labels: int | None, k: int, name: str) -> MetricFunction:
        if training is None or n_labels is None:
            raise ValueError(f"{name} needs the labels of the training rows.")
        return propensity_scored(training_propensities(training, n_labels), k, name)


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


def _per_target(metrics: dict[str, MetricFunction]) -> dict[str, PerTarget]:
    return {f"{name}_per_target": PerTarget(name, function) for name, function in metrics.items()}


_CLASS_METRICS: dict[str, MetricFunction] = {
    **_classification("cross_entropy", row_mean(softmax_cross_entropy), row_mean(right_class)),
    "auc": area_of_classes(roc_area),
    "average_precision": area_of_classes(precision_recall_area),
    "f1_micro": partial(f1_of_classes, "micro"),
    "f1_macro": partial(f1_of_classes, "macro"),
}
_LABEL_METRICS: dict[str, MetricFunction] = {
    **_classification("binary_cross_entropy", cell_mean(binary_cross_entropy), labels_accuracy),
    "auc": area_of_labels(roc_area),
    "average_precision": area_of_labels(precision_recall_area),
}
_AT_K: dict[str, AtK | _PropensityScored] = {
    "precision@k": PRECISION,
    "psp@k": _PropensityScored(),
    "ndcg@k": NDCG,
}
_DEVIANCES = {
    "poisson": _WithDetails(lambda y, prediction, details: deviance_values(y, prediction, 1)),
    "gamma": _WithDetails(lambda y, prediction, details: deviance_values(y, prediction, 2)),
    "tweedie": _WithDetails(
        lambda y, prediction, details: deviance_values(y, prediction, details.tweedie_power)
    ),
}
_ERRORS: dict[str, MetricFunction] = {
    "rmse": rmse,
    "rrmse": rrmse,
    "mse": cell_mean(squared_error),
    "mae": cell_mean(absolute_error),
    "mape": cell_mean(relative_error),
    "r2": r2,
}
_OF_TARGETS = {"rmse": rmse_of, "rrmse": rrmse_of, "r2": r2_of}
_METRICS: dict[TargetKind, dict[str, MetricFunction | AtK | PerTarget | _PropensityScored | _WithDetails]] = {
    "regression": {
        **_ERRORS,
        "huber": _WithDetails(
            lambda y, prediction, details: huber_values(y, prediction, details.huber_delta)
        ),
        "quantile": _WithDetails(
            lambda y, prediction, details: pinball_values(y, prediction, details.quantile_levels)
        ),
        **_DEVIANCES,
        **_per_target(_ERRORS),
    },
    "multiclass": {**_CLASS_METRICS, **_AT_K},
    "binary": {
        **_LABEL_METRICS,
        "f1_micro": partial(f1_of_two_classes, "micro"),
        "f1_macro": partial(f1_of_two_classes, "macro"),
    },
    "multilabel": {
        **_LABEL_METRICS,
        "f1_micro": partial(f1_of_labels, "micro"),
        "f1_macro": partial(f1_of_labels, "macro"),
        "top1_accuracy": PRECISION.metric(1, "top1_accuracy"),
        **_per_target({name: _LABEL_METRICS[name] for name in ("log_loss", "auc", "average_precision")}),
        **_AT_K,
    },
}
# Sums of what rows have by themselves, by `polyleaf.data.sums`: shards of the rows add up.
_MEANS_OF_ROWS = frozenset(
    {
        *("rmse", "rrmse", "mse", "mae", "mape", "r2", "huber", "quantile", *_DEVIANCES),
        *("cross_entropy", "binary_cross_entropy", "log_loss", "accuracy", "error"),
        *("top1_accuracy", "precision@k", "psp@k", "ndcg@k", "f1_micro", "f1_macro"),
    }
)
_GREATER_IS_BETTER = frozenset(
    {"accuracy", "auc", "average_precision", "f1_micro", "f1_macro", "r2", "top1_accuracy", *_AT_K}
)
