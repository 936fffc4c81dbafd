"""How good the k labels with the highest scores are."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from polyleaf.data.float_arrays import as_float64
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.row_weights import check_weights
from polyleaf.data.sparse_formats import compressed
from polyleaf.data.sums import weighted_mean
from polyleaf.metrics.average import MetricFunction, dense, mean_of_columns, mean_of_rows, row_weights
from polyleaf.metrics.sparse_ranking import best_stored_columns, stored_at


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
    return _ranking(PRECISION, y, score, k, weight)


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
    return _ranking(NDCG, y, score, k, weight)


def _ranking(metric: AtK, y: object, score: object, k: int, weight: object) -> float:
    given = checked_ranking(y, score, k, weight)
    return metric.metric(given.k, f"k={k}")(given.y, given.score, given.weight)


@dataclass(frozen=True)
class Ranking:
    """What a ranking is measured by, checked: labels as 0 and 1 or classes as columns, scores, k, weights."""

    y: Any
    score: Any
    k: int
    weight: FloatArray | None


def checked_ranking(y: Any, score: Any, k: Any, weight: object) -> Ranking:
    """Return what users gave, checked, or raise; whether there are k labels is not looked at."""
    scores = _checked_scores(score)
    truth = _checked_truth(y, scores.shape)
    if isinstance(k, bool | np.bool_) or not isinstance(k, numbers.Integral):
        raise TypeError(f"k must be an int; got {k!r} of type {type(k).__name__}.")
    return Ranking(truth, scores, int(k), check_weights(weight, scores.shape[0], "weight"))


def _checked_scores(score: Any) -> Any:
    is_sparse = scipy.sparse.issparse(score)
    if is_sparse:
        scores: Any = scipy.sparse.csr_array(compressed(score, "score"))
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
        truth: Any = scipy.sparse.csr_array(compressed(y, "y"))
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


# --- the k labels with the highest scores ------------------------------------------------------------------


def check_k(k: int, n_labels: int, name: str) -> None:
    """Raise ValueError, calling the metric by `name`, unless there are k labels to look at."""
    if not 1 <= k <= n_labels:
        raise ValueError(f"{name} ranks {n_labels} labels, so k must be from 1 to {n_labels}.")


@dataclass(frozen=True)
class AtK:
    """Metrics of one kind, one for each k; `of_hits` gets what `_hits` found and how many labels are true."""

    of_hits: Callable[[FloatArray, Array], FloatArray]

    def metric(self, k: int, name: str) -> MetricFunction:
        """Return the metric of the k highest scores, which errors call by `name`."""

        def of_rows(y: Array, score: FloatArray) -> FloatArray:
            n_true = np.ones(len(y), dtype=np.int64) if y.ndim == 1 else np.count_nonzero(y == 1, axis=1)
            return self.of_hits(_hits(y, score, k), n_true)

        def averaged(y: Any, score: Any, weight: FloatArray | None) -> float:
            check_k(k, score.shape[1], name)
            if are_sparse(y, score, weight):
                hits = stored_at(y, best_stored_columns(score, k)).astype(np.float64)
                n_true = np.asarray((y == 1).sum(axis=1)).ravel()
                return float(weighted_mean(self.of_hits(hits, n_true), weight))
            if weight is not None and weight.ndim == 2:  # only labels that were observed are ranked
                score = np.where(weight > 0, dense(score), -np.inf)
            return mean_of_rows(of_rows, y, score, row_weights(weight))

        return averaged


def are_sparse(y: Any, score: Any, weight: FloatArray | None) -> bool:
    """Whether labels and scores are compressed rows, and all labels are observed."""
    both = scipy.sparse.issparse(y) and scipy.sparse.issparse(score)
    return both and (weight is None or weight.ndim == 1)


def _hits(y: Array, score: FloatArray, k: int) -> FloatArray:
    """1 where the label in place 1 ... k of a row is true, else 0."""
    best = best_columns(score, k)
    hits: npt.NDArray[np.bool_]
    hits = best == y[:, np.newaxis] if y.ndim == 1 else np.take_along_axis(y, best, axis=1) == 1
    return hits.astype(np.float64)


def best_columns(score: FloatArray, k: int) -> npt.NDArray[np.intp]:
    """Return the columns of each row's k highest scores, best first; of equal ones the lower column first."""
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
    return mean_of_columns(hits)


def _discounted_hits(hits: FloatArray, n_true: Array) -> FloatArray:
    k = hits.shape[1]
    discount = 1 / np.log2(np.arange(2, k + 2))
    largest = np.concatenate([[0.0], discount.cumsum()])[np.minimum(n_true, k)]
    share: FloatArray = np.divide(hits @ discount, largest, out=np.zeros(len(hits)), where=n_true > 0)
    return share


PRECISION, NDCG = AtK(_share_of_hits), AtK(_discounted_hits)
