"""Metrics of the user's own: functions, functions and scorers of scikit-learn, and which way is up."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import metrics as sklearn_metrics
from sklearn.metrics._scorer import _BaseScorer

from polyleaf.data.float_arrays import read_only
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.metrics.average import MetricFunction
from polyleaf.metrics.by_columns import is_mean_of_columns, measured_by_columns, refuse_cells
from polyleaf.metrics.metric import Metric
from polyleaf.metrics.propensity import psp_at_k
from polyleaf.metrics.ranking import ndcg_at_k, precision_at_k, top1_accuracy
from polyleaf.params.objectives import TargetKind

if TYPE_CHECKING:
    from polyleaf.metrics.average import CsrMatrix

_OWN_MAXIMISED = (top1_accuracy, precision_at_k, ndcg_at_k, psp_at_k)
# By scikit-learn's convention what ends in "_score" is maximised; these are the exceptions.
_MAXIMISED, _MINIMISED = frozenset({"matthews_corrcoef"}), frozenset({"davies_bouldin_score"})
# Functions of scikit-learn that compare classes with classes: probabilities would be an error.
_OF_DECISIONS = frozenset(
    {
        "accuracy_score",
        "balanced_accuracy_score",
        "cohen_kappa_score",
        "f1_score",
        "fbeta_score",
        "hamming_loss",
        "jaccard_score",
        "matthews_corrcoef",
        "precision_score",
        "recall_score",
        "zero_one_loss",
    }
)


def make_metric(
    function: Callable[..., float], *, greater_is_better: bool = False, name: str | None = None
) -> OwnMetric:
    """Return a metric of your own for `eval_metric` that says which way is up, and what it is called.

    Parameters
    ----------
    function : callable (y, prediction) -> float
        What to measure; one with an argument `sample_weight` gets the weights of the rows.
    greater_is_better : bool, default=False
        Whether it is to be maximised.
    name : str, default=None
        Its key in ``evals_result_``. None: the name of the function.

    Returns
    -------
    OwnMetric
        Callable as the function is.

    Examples
    --------
    >>> import numpy as np
    >>> within_one = make_metric(
    ...     lambda y, prediction: np.mean(np.abs(y - prediction) < 1), greater_is_better=True, name="within 1"
    ... )
    >>> within_one.name, within_one.greater_is_better
    ('within 1', True)
    """
    if not callable(function):
        raise TypeError(f"function must be callable; got {function!r} of type {type(function).__name__}.")
    if isinstance(function, _BaseScorer | OwnMetric):
        raise TypeError(f"function is {function!r}, which says itself which way is up; pass it as it is.")
    if not isinstance(greater_is_better, bool | np.bool_):
        raise TypeError(f"greater_is_better must be True or False; got {greater_is_better!r}.")
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name must be a str; got {name!r} of type {type(name).__name__}.")
    return OwnMetric(function, bool(greater_is_better), _name(function) if name is None else name)


@dataclass(frozen=True)
class OwnMetric:
    """A function with a direction and a name, as `make_metric` returns it.

    Attributes
    ----------
    function : callable
        What is measured.
    greater_is_better : bool
        Whether it is maximised.
    name : str
        Its key in ``evals_result_``.
    """

    function: Callable[..., float]
    greater_is_better: bool
    name: str

    def __call__(self, *arguments: Any, **named: Any) -> float:
        """Call the function."""
        return self.function(*arguments, **named)


def custom_metric(function: Callable[..., Any], kind: TargetKind, classes: Array | None) -> Metric:
    """Return the metric that a callable is.

    Parameters
    ----------
    function : callable
        Of the user: a function, what `make_metric` made, or a scorer of scikit-learn.
    kind : {"regression", "multiclass", "binary", "multilabel"}
        The problem.
    classes : ndarray or None
        The class labels; None: there are none, or they are the codes.

    Raises
    ------
    TypeError, ValueError
        For a scorer that wants what a metric is not given, or a direction that is neither True nor False.
    """
    if isinstance(function, _BaseScorer):
        return _scorer(function, kind, classes)
    if type(function).__module__.startswith("sklearn.") and not inspect.isfunction(function):
        raise TypeError(
            f"eval_metric {function!r:.80} is a {type(function).__name__} of scikit-learn, which needs the "
            "fitted estimator; pass a function, or what sklearn.metrics.make_scorer returns."
        )
    greater_is_better = _direction(function)
    if isinstance(function, OwnMetric):
        name, function = function.name, function.function
    else:
        name = _name(function)
    prepare: Prepared = _as_given
    if _compares_decisions(function, kind):
        prepare = functools.partial(_decided, kind=kind, classes=classes)
        function = _with_positive_class(function, classes)
    return _metric(function, name, greater_is_better, prepare, kind)


# --- scikit-learn's ----------------------------------------------------------------------------------------

Prepared = Callable[[Any, Any], tuple[Any, Any]]


def _scorer(scorer: Any, kind: TargetKind, classes: Array | None) -> Metric:
    """Return the metric of a scorer: its function, on what it would have asked the estimator for."""
    function, sign, options = scorer._score_func, scorer._sign, scorer._kwargs
    wanted = scorer._response_method
    methods = (wanted,) if isinstance(wanted, str) else tuple(wanted)
    name = _name(function) if sign > 0 else f"neg_{_name(function)}"
    if kind == "regression" or "predict" in methods:
        prepare: Prepared = functools.partial(_decided, kind=kind, classes=classes)
    elif "predict_proba" in methods:
        first = classes is not None and len(classes) == 2 and options.get("pos_label") == classes[0]
        prepare = functools.partial(_probabilities, kind=kind, classes=classes, of_first=first)
    else:
        raise ValueError(
            f"eval_metric {scorer!r}: a metric is given probabilities, not what {methods[0]} returns; make "
            f"the scorer with response_method='predict_proba', or pass the function {_name(function)} itself."
        )
    made = _metric(functools.partial(function, **options), name, True, prepare, kind)
    return replace(made, function=functools.partial(_signed, made.function, sign))


def _signed(function: MetricFunction, sign: int, y: Any, prediction: Any, weight: FloatArray | None) -> float:
    return sign * function(y, prediction, weight)


def _decided(y: Any, prediction: Any, *, kind: TargetKind, classes: Array | None = None) -> tuple[Any, Any]:
    """Return targets and predictions as ``predict`` has them: numbers, classes, or labels of 0 and 1."""
    if kind == "regression":
        return (y[:, 0], prediction[:, 0]) if y.shape[1] == prediction.shape[1] == 1 else (y, prediction)
    if kind == "multilabel":
        return y, (prediction > 0.5).astype(np.int64)
    codes = (prediction[:, 0] > 0.5).astype(np.intp) if kind == "binary" else prediction.argmax(axis=1)
    return _labels(y, kind, classes), codes if classes is None else classes[codes]


def _probabilities(
    y: Any, prediction: Any, *, kind: TargetKind, classes: Array | None, of_first: bool
) -> tuple[Any, Any]:
    """Return targets, and probabilities as scikit-learn has them: of two classes, those of one."""
    if kind == "multilabel":
        return y, prediction
    if prediction.shape[1] <= 2:
        second = prediction[:, -1]
        prediction = 1 - second if of_first else second
    return _labels(y, kind, classes), prediction


def _labels(y: Any, kind: TargetKind, classes: Array | None) -> Any:
    codes = (y[:, 0] == 1).astype(np.intp) if kind == "binary" else y
    return codes if classes is None else classes[codes]


def _known(function: Callable[..., Any]) -> str | None:
    """Return the name of a function of scikit-learn's metrics."""
    name = getattr(function, "__name__", "")
    return name if name and getattr(sklearn_metrics, name, None) is function else None


def _compares_decisions(function: Callable[..., Any], kind: TargetKind) -> bool:
    return kind != "regression" and _known(_innermost(function)) in _OF_DECISIONS


def _with_positive_class(function: Callable[..., Any], classes: Array | None) -> Callable[..., Any]:
    """Return a function with the second of two classes as the positive one, unless it says so itself."""
    if classes is None or len(classes) != 2 or "pos_label" in _options(function):
        return function
    parameters = inspect.signature(function).parameters
    if "pos_label" not in parameters or parameters["average"].default != "binary":
        return function
    return functools.partial(function, pos_label=classes[1])


def _metric(
    function: Callable[..., Any], name: str, greater_is_better: bool, prepare: Prepared, kind: TargetKind
) -> Metric:
    """Return the metric of a function; one of scikit-learn takes weights of cells as far as it can."""
    takes_weight = _takes_weight(function)
    check = None
    if takes_weight and _known(_innermost(function)) is not None:
        if not is_mean_of_columns(_innermost(function), _options(function), kind):
            check = functools.partial(refuse_cells, name)
        function = functools.partial(measured_by_columns, function)
    made = _measured(function, name, prepare, takes_weight)
    return Metric(name, greater_is_better, made, takes_weight, check_weights=check, takes_sparse=False)


# --- any function ------------------------------------------------------------------------------------------


def _direction(function: Callable[..., Any]) -> bool:
    """Return whether a function is maximised: as it says, as is known of it, and otherwise not."""
    inner = _innermost(function)
    for one in (function, inner):
        said = getattr(one, "greater_is_better", None)
        if said is not None:
            if not isinstance(said, bool | np.bool_):
                raise TypeError(
                    f"eval_metric {_name(function)!r}: greater_is_better must be True or False; got {said!r}."
                )
            return bool(said)
    known = _known(inner)
    if known is not None:
        return known in _MAXIMISED or (known.endswith("_score") and known not in _MINIMISED)
    return inner in _OWN_MAXIMISED


def _innermost(function: Any) -> Any:
    """Return the function that partial objects give arguments to."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _options(function: Any) -> dict[str, Any]:
    """Return the named arguments that partial objects give to a function; the outer ones win."""
    options: dict[str, Any] = {}
    while isinstance(function, functools.partial):
        options = function.keywords | options
        function = function.func
    return options


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _takes_weight(function: Callable[..., Any]) -> bool:
    try:
        return "sample_weight" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # a builtin without a signature
        return False


def _as_given(y: Any, prediction: Any) -> tuple[Any, Any]:
    return y, prediction


def _shielded(values: Array | CsrMatrix) -> Array | CsrMatrix:
    """Return dense values as a view that cannot be written to: they may be the user's own."""
    return read_only(values) if isinstance(values, np.ndarray) else values


def _measured(
    function: Callable[..., Any], name: str, prepare: Prepared, takes_weight: bool
) -> MetricFunction:
    """Return the function of a metric, which makes a number of what a callable returns."""

    def measured(
        y: Array | CsrMatrix, prediction: FloatArray | CsrMatrix, weight: FloatArray | None
    ) -> float:
        weights = {"sample_weight": weight} if takes_weight and weight is not None else {}
        value = function(*prepare(_shielded(y), _shielded(prediction)), **weights)
        try:
            return float(value)
        except (TypeError, ValueError) as error:
            raise TypeError(f"eval_metric {name!r} must return a number; got {value!r}.") from error

    return measured
