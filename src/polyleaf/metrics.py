"""What is measured on the evaluation sets after each round, and functions to measure a prediction with.

To be called by users: `rmse_per_output`, `top1_accuracy`, `precision_at_k`, `ndcg_at_k`.
"""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from polyleaf.data.inputs import Array, FloatArray, as_float64, check_weights, read_only
from polyleaf.losses.details import LossDetails
from polyleaf.losses.log_link import check_range
from polyleaf.losses.values import deviance_values, huber_values, pinball_values
from polyleaf.params.rules import metric_family
from polyleaf.params.target_specs import TargetKind

if TYPE_CHECKING:
    # SciPy's classes take parameters in newer versions only.
    CsrMatrix = scipy.sparse.csr_array[Any, tuple[int, int]] | scipy.sparse.csr_matrix[Any]

MetricFunction = Callable[["Array | CsrMatrix", "FloatArray | CsrMatrix", FloatArray | None], float]

# Cells computed together: the temporaries of a wide prediction stay in the cache, not in memory beside it.
_BLOCK_CELLS = 1 << 16
# Keeps the logarithm of a probability finite.
_SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)


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
    if found is None or isinstance(found, _AtK) != (k is not None):
        numbered = " with a number for k" if any(isinstance(one, _AtK) for one in table.values()) else ""
        raise ValueError(
            f"eval_metric {name!r} is not defined for a {kind} target; allowed are "
            f"{', '.join(table)}{numbered}."
        )
    if isinstance(found, _AtK):
        assert k is not None
        if n_labels is not None:
            _check_k(k, n_labels, f"eval_metric {name!r}")
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


# --- for users ---------------------------------------------------------------------------------------------


def rmse_per_output(y: object, prediction: object, weight: object = None) -> FloatArray:
    """Return the root of the mean squared error of each output.

    Parameters
    ----------
    y, prediction : array-like of shape (n_rows,) or (n_rows, n_outputs)
        The targets, and what was predicted for them.
    weight : array-like of shape (n_rows,), default=None
        Row weights.

    Returns
    -------
    ndarray of shape (n_outputs,)

    Examples
    --------
    >>> rmse_per_output([[0, 0], [0, 4]], [[1, 0], [1, 0]])
    array([1.        , 2.82842712])
    """
    targets, predicted = as_float64(y, "y"), as_float64(prediction, "prediction")
    if targets.shape != predicted.shape or targets.ndim not in (1, 2) or len(targets) == 0:
        raise ValueError(
            f"y has shape {targets.shape} and prediction {predicted.shape}; both must have the same rows and "
            "columns, and at least one row."
        )
    weights = check_weights(weight, len(targets), "weight")
    squared = np.average((targets - predicted) ** 2, axis=0, weights=weights)
    return np.sqrt(np.atleast_1d(squared))


def top1_accuracy(y: object, score: object, weight: object = None) -> float:
    """Return the share of rows whose label with the highest score is a true one.

    Ties go to the lower column. A row without a true label counts as wrong.

    Parameters
    ----------
    y : array-like or SciPy sparse matrix of shape (n_rows, n_labels), or array-like of shape (n_rows,)
        Zeros and ones, one column per label; or for one label a row the column of its class.
    score : array-like or SciPy sparse matrix of shape (n_rows, n_labels)
        Probabilities, or any other numbers that rank the labels. Sparse matrices are made dense a few rows at
        a time, never as a whole; what they do not store is a score of 0.
    weight : array-like of shape (n_rows,), default=None
        Row weights.

    Examples
    --------
    >>> top1_accuracy([[1, 0, 1], [0, 1, 0]], [[0.2, 0.3, 0.9], [0.8, 0.5, 0.1]])
    0.5
    """
    return precision_at_k(y, score, 1, weight)


def precision_at_k(y: object, score: object, k: int, weight: object = None) -> float:
    """Return the share of true labels among the k labels with the highest scores, averaged over the rows.

    Ties go to the lower column. A row with fewer than k true labels cannot reach 1.

    Parameters
    ----------
    y, score, weight
        As in `top1_accuracy`.
    k : int
        From 1 to the number of labels.

    Examples
    --------
    >>> precision_at_k([[1, 0, 1], [0, 1, 0]], [[0.2, 0.3, 0.9], [0.8, 0.5, 0.1]], 2)
    0.5
    """
    return _ranking(_PRECISION, y, score, k, weight)


def ndcg_at_k(y: object, score: object, k: int, weight: object = None) -> float:
    """Return the normalised discounted cumulative gain of the k highest scores, averaged over the rows.

    A true label in place i = 1 ... k counts 1 / log2(i + 1); the sum is divided by the largest one that the
    number of true labels allows. It is 0 for a row without a true label. Ties go to the lower column.

    Parameters
    ----------
    y, score, weight
        As in `top1_accuracy`.
    k : int
        From 1 to the number of labels.

    Examples
    --------
    >>> round(ndcg_at_k([[1, 0, 1], [0, 1, 0]], [[0.2, 0.3, 0.9], [0.8, 0.5, 0.1]], 2), 4)
    0.622
    """
    return _ranking(_NDCG, y, score, k, weight)


def _ranking(metric: _AtK, y: Any, score: Any, k: Any, weight: object) -> float:
    scores = _checked_scores(score)
    truth = _checked_truth(y, scores.shape)
    if isinstance(k, bool | np.bool_) or not isinstance(k, numbers.Integral):
        raise TypeError(f"k must be an int; got {k!r} of type {type(k).__name__}.")
    weights = check_weights(weight, scores.shape[0], "weight")
    return metric.metric(int(k), f"k={k}")(truth, scores, weights)


def _checked_scores(score: Any) -> Any:
    is_sparse = scipy.sparse.issparse(score)
    if is_sparse:
        scores = score.tocsr()
    else:  # float32 is good enough to rank, and may be too large to copy
        scores = (
            np.asarray(score) if getattr(score, "dtype", None) == np.float32 else as_float64(score, "score")
        )
    if scores.ndim != 2 or 0 in scores.shape:
        raise ValueError(f"score has shape {scores.shape}; it must have rows, and a column per label.")
    if np.isnan(scores.min()):  # NaN if one of them is
        raise ValueError("score contains NaN; labels cannot be ranked by it.")
    return scores


def _checked_truth(y: Any, shape: tuple[int, int]) -> Any:
    """Return a matrix of 0 and 1, or the column of each row's class, or raise."""
    is_sparse = scipy.sparse.issparse(y)
    if is_sparse:
        truth = y.tocsr()
        if not truth.has_canonical_format:  # the same cell twice
            truth = truth.copy()
            truth.sum_duplicates()
        cells = truth.data
    else:
        truth = cells = np.asarray(y)
    n_rows, n_labels = shape
    if truth.shape not in ((n_rows,), shape):
        raise ValueError(
            f"y has shape {truth.shape}, but score has shape {shape}; y must have the same shape, or hold "
            f"one class a row, shape {(n_rows,)}."
        )
    if truth.ndim == 1:
        if cells.dtype.kind not in "iu" or cells.min() < 0 or cells.max() >= n_labels:
            raise ValueError(
                f"y is 1-D, so it must hold columns of score: integers from 0 to {n_labels - 1}."
            )
    elif cells.dtype.kind not in "biuf" or not ((cells == 0) | (cells == 1)).all():
        raise ValueError("y has a column per label, so it must hold zeros and ones only.")
    return truth


# --- averages over rows ------------------------------------------------------------------------------------

RowLoss = Callable[[Array, FloatArray], FloatArray]  # of each row
CellLoss = Callable[[Array, FloatArray], FloatArray]  # of each row and column


def _row_average(
    loss: RowLoss, y: Array | CsrMatrix, prediction: FloatArray | CsrMatrix, weight: FloatArray | None
) -> float:
    """Average a loss of rows over the rows, a block of rows at a time."""
    n_rows, n_columns = prediction.shape
    step = max(1, _BLOCK_CELLS // n_columns)
    losses = np.empty(n_rows)
    for start in range(0, n_rows, step):
        block = slice(start, start + step)
        losses[block] = loss(_dense(y[block]), _dense(prediction[block]))
    return float(np.average(losses, weights=weight))


def _cell_average(loss: CellLoss, y: Any, prediction: Any, weight: FloatArray | None) -> float:
    """Average a loss of cells over the cells, a block of rows at a time."""
    if weight is None or weight.ndim == 1:
        return _row_average(lambda y, p: _mean_of_columns(loss(y, p)), y, prediction, weight)
    largest = weight.max()  # sums of tiny or huge weights stay within float64
    n_rows, n_columns = prediction.shape
    step = max(1, _BLOCK_CELLS // n_columns)
    total = weighted = 0.0
    for start in range(0, n_rows, step):
        block = slice(start, start + step)
        shares = weight[block] / largest
        total += shares.sum()
        weighted += (loss(_dense(y[block]), _dense(prediction[block])) * shares).sum()
    return float(weighted / total)


def _row_weights(weight: FloatArray | None) -> FloatArray | None:
    """Return weights of rows: those of cells by their mean."""
    return weight if weight is None or weight.ndim == 1 else weight.mean(axis=1)


def _dense(rows: Any) -> Array:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)


def _averaged(loss: RowLoss) -> MetricFunction:
    return lambda y, prediction, weight: _row_average(loss, y, prediction, weight)


def _averaged_cells(loss: CellLoss) -> MetricFunction:
    return lambda y, prediction, weight: _cell_average(loss, y, prediction, weight)


def _squared_error(y: Array, prediction: FloatArray) -> FloatArray:
    return np.asarray((y - prediction) ** 2)


def _absolute_error(y: Array, prediction: FloatArray) -> FloatArray:
    return np.abs(y - prediction)


def _softmax_cross_entropy(y: Array, prediction: FloatArray) -> FloatArray:
    of_label = prediction[np.arange(len(y)), y]
    loss: FloatArray = -np.log(np.clip(of_label, _SMALLEST_PROBABILITY, 1.0))
    return loss


def _binary_cross_entropy(y: Array, prediction: FloatArray) -> FloatArray:
    p = np.clip(prediction, _SMALLEST_PROBABILITY, 1 - _SMALLEST_PROBABILITY)
    return np.asarray(-np.log(np.where(y == 1, p, 1 - p)))


def _right_class(y: Array, prediction: FloatArray) -> FloatArray:
    right: npt.NDArray[np.bool_] = prediction.argmax(axis=1) == y
    return right.astype(np.float64)


def _labels_accuracy(y: Any, prediction: Any, weight: FloatArray | None) -> float:
    """Share of rows whose labels, as far as they were observed, are all right."""
    if weight is None or weight.ndim == 1:
        return _row_average(_right_labels, y, prediction, weight)
    right = (((prediction > 0.5) == (y == 1)) | (weight == 0)).all(axis=1)
    return float(np.average(right, weights=_row_weights(weight)))


def _right_labels(y: Array, prediction: FloatArray) -> FloatArray:
    right: npt.NDArray[np.bool_] = ((prediction > 0.5) == (y == 1)).all(axis=1)
    return right.astype(np.float64)


def _mean_of_columns(cells: FloatArray) -> FloatArray:
    mean: FloatArray = cells.mean(axis=1)
    return mean


def _rmse(y: Array | CsrMatrix, prediction: FloatArray | CsrMatrix, weight: FloatArray | None) -> float:
    return float(np.sqrt(_cell_average(_squared_error, y, prediction, weight)))


def _r2(y: Any, prediction: Any, weight: FloatArray | None) -> float:
    """Coefficient of determination, averaged over the targets; 1 or 0 for a target that does not vary."""
    if weight is not None and weight.ndim == 2:
        observed = (weight > 0).any(axis=0)  # a target may have no observation in an evaluation set
        y, prediction, weight = y[:, observed], prediction[:, observed], weight[:, observed]
    residual = np.average((y - prediction) ** 2, axis=0, weights=weight)
    variance = np.average((y - np.average(y, axis=0, weights=weight)) ** 2, axis=0, weights=weight)
    constant = variance == 0
    explained = 1 - residual / np.where(constant, 1, variance)
    return float(np.where(constant, residual == 0, explained).mean())


@dataclass(frozen=True)
class _WithDetails:
    """A metric that is the mean over rows and outputs of a loss with parameters."""

    of_cells: Callable[[Array, FloatArray, LossDetails], FloatArray]

    def metric(self, details: LossDetails) -> MetricFunction:
        return _averaged_cells(lambda y, prediction: self.of_cells(y, prediction, details))


def _one_minus(function: MetricFunction) -> MetricFunction:
    return lambda y, prediction, weight: 1 - function(y, prediction, weight)


# --- the k labels with the highest scores ------------------------------------------------------------------


def _check_k(k: int, n_labels: int, name: str) -> None:
    if not 1 <= k <= n_labels:
        raise ValueError(f"{name} ranks {n_labels} labels, so k must be from 1 to {n_labels}.")


@dataclass(frozen=True)
class _AtK:
    """Metrics of one kind, one for each k; `of_hits` gets what `_hits` found and how many labels are true."""

    of_hits: Callable[[FloatArray, Array], FloatArray]

    def metric(self, k: int, name: str) -> MetricFunction:
        def of_rows(y: Array, score: FloatArray) -> FloatArray:
            n_true = np.ones(len(y), dtype=np.int64) if y.ndim == 1 else np.count_nonzero(y == 1, axis=1)
            return self.of_hits(_hits(y, score, k), n_true)

        def averaged(y: Array | CsrMatrix, score: FloatArray | CsrMatrix, weight: FloatArray | None) -> float:
            _check_k(k, score.shape[1], name)
            if weight is not None and weight.ndim == 2:  # only labels that were observed are ranked
                score = np.where(weight > 0, _dense(score), -np.inf)
            return _row_average(of_rows, y, score, _row_weights(weight))

        return averaged


def _hits(y: Array, score: FloatArray, k: int) -> FloatArray:
    """1 where the label in place 1 ... k of a row is true, else 0."""
    best = _best_columns(score, k)
    hits: npt.NDArray[np.bool_]
    hits = best == y[:, np.newaxis] if y.ndim == 1 else np.take_along_axis(y, best, axis=1) == 1
    return hits.astype(np.float64)


def _best_columns(score: FloatArray, k: int) -> npt.NDArray[np.intp]:
    """Columns of the k highest scores of each row, best first; of equal ones the lower column first."""
    score = np.where(np.isnan(score), -np.inf, score)  # a callable objective may have led to NaN
    if k == 1:
        highest: npt.NDArray[np.intp] = np.argmax(score, axis=1, keepdims=True)
        return highest
    # Not all columns are sorted: those above the k-th highest score, then as many of its equals as have room.
    at = score.shape[1] - k
    kth = np.partition(score, at, axis=1)[:, at, np.newaxis]
    above, equal = score > kth, score == kth
    chosen = above | (equal & (equal.cumsum(axis=1) <= k - above.sum(axis=1, keepdims=True)))
    columns = chosen.nonzero()[1].reshape(len(score), k)
    order = np.argsort(-np.take_along_axis(score, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


def _share_of_hits(hits: FloatArray, n_true: Array) -> FloatArray:
    return _mean_of_columns(hits)


def _discounted_hits(hits: FloatArray, n_true: Array) -> FloatArray:
    k = hits.shape[1]
    discount = 1 / np.log2(np.arange(2, k + 2))
    largest = np.concatenate([[0.0], discount.cumsum()])[np.minimum(n_true, k)]
    share: FloatArray = np.divide(hits @ discount, largest, out=np.zeros(len(hits)), where=n_true > 0)
    return share


_PRECISION, _NDCG = _AtK(_share_of_hits), _AtK(_discounted_hits)


# --- names -------------------------------------------------------------------------------------------------


def _classification(
    cross_entropy_name: str, cross_entropy: MetricFunction, accuracy: MetricFunction
) -> dict[str, MetricFunction]:
    return {
        cross_entropy_name: cross_entropy,
        "log_loss": cross_entropy,
        "accuracy": accuracy,
        "error": _one_minus(accuracy),
    }


_CLASS_METRICS = _classification("cross_entropy", _averaged(_softmax_cross_entropy), _averaged(_right_class))
_LABEL_METRICS = _classification(
    "binary_cross_entropy", _averaged_cells(_binary_cross_entropy), _labels_accuracy
)
_AT_K = {"precision@k": _PRECISION, "ndcg@k": _NDCG}
_DEVIANCES = {
    "poisson": _WithDetails(lambda y, prediction, details: deviance_values(y, prediction, 1)),
    "gamma": _WithDetails(lambda y, prediction, details: deviance_values(y, prediction, 2)),
    "tweedie": _WithDetails(
        lambda y, prediction, details: deviance_values(y, prediction, details.tweedie_power)
    ),
}
_METRICS: dict[TargetKind, dict[str, MetricFunction | _AtK | _WithDetails]] = {
    "regression": {
        "rmse": _rmse,
        "mse": _averaged_cells(_squared_error),
        "mae": _averaged_cells(_absolute_error),
        "r2": _r2,
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
    "multilabel": {**_LABEL_METRICS, "top1_accuracy": _PRECISION.metric(1, "top1_accuracy"), **_AT_K},
}
_GREATER_IS_BETTER = frozenset({"accuracy", "r2", "top1_accuracy", *_AT_K})
