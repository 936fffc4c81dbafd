"""Precision where rare labels are often left out: each hit counts by how likely it is to be noted.

Propensities are those of Jain, Prabhu and Varma (2016), "Extreme multi-label loss functions".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from polyleaf.data.float_arrays import as_float64
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sums import column_sums, group_sums, row_count, weighted_mean
from polyleaf.metrics.average import MetricFunction, dense, mean_of_rows, row_weights
from polyleaf.metrics.ranking import are_sparse, best_columns, check_k, checked_ranking
from polyleaf.metrics.sparse_ranking import best_stored_columns, largest_of_rows, stored_at

_A, _B = 0.55, 1.5


def label_propensities(y: object, a: float = _A, b: float = _B) -> FloatArray:
    """Return how likely each label is to be noted where it holds, by how many rows have it.

    That of a label which n of N rows have is ``1 / (1 + C (n + b)**-a)`` with ``C = (log N - 1) (b + 1)**a``
    (Jain et al., 2016); C is at least 0.

    Parameters
    ----------
    y : array-like or SciPy sparse matrix of shape (n_rows, n_labels)
        Zeros and ones: the labels of the training rows.
    a, b : float, default=0.55 and 1.5
        Constants of the data; these are the usual ones, of Wikipedia.

    Returns
    -------
    ndarray of shape (n_labels,)

    Examples
    --------
    >>> label_propensities([[1, 0]] * 90 + [[1, 1]] * 10).round(3)
    array([0.68 , 0.391])
    """
    labels: Any = y.tocsr() if scipy.sparse.issparse(y) else np.asarray(y)  # type: ignore[attr-defined]
    if labels.ndim != 2 or row_count(range(labels.shape[0])) == 0:
        raise ValueError(f"y has shape {labels.shape}; it must have rows, and a column per label.")
    count = column_sums(np.atleast_2d(np.asarray((labels == 1).sum(axis=0), dtype=np.float64)))
    return _propensities(count, row_count(range(labels.shape[0])), a, b)


def training_propensities(y: Any, n_labels: int) -> FloatArray:
    """Return the propensities of labels, or of classes given as codes; weights of rows do not count."""
    if y.ndim == 1:
        return _propensities(group_sums(None, y, n_labels), row_count(y), _A, _B)
    return label_propensities(y)


def _propensities(count: Array, n_rows: int, a: float, b: float) -> FloatArray:
    c = max(np.log(n_rows) - 1, 0.0) * (b + 1) ** a
    return np.asarray(1 / (1 + c * (count + b) ** -a), dtype=np.float64)


def psp_at_k(y: object, score: object, k: int, propensity: object, weight: object = None) -> float:
    """Return the propensity-scored precision of the k highest scores, as a share of the best there can be.

    A true label among the k counts 1 / its propensity. The sum over the rows is divided by that of the best
    ranking, as published tables of extreme classification have it, so that it is at most 1. It is 0 when no
    row has a true label. Ties go to the lower column.

    Parameters
    ----------
    y, score, weight
        As in `top1_accuracy`.
    k : int
        From 1 to the number of labels.
    propensity : array-like of shape (n_labels,)
        As of `label_propensities`, above 0.

    Examples
    --------
    >>> y, score = [[1, 0, 1], [0, 1, 0]], [[0.2, 0.3, 0.9], [0.8, 0.5, 0.1]]
    >>> round(psp_at_k(y, score, 1, [0.5, 0.5, 0.25]), 4)
    0.6667
    """
    given = checked_ranking(y, score, k, weight)
    propensities = as_float64(propensity, "propensity")
    n_labels = given.score.shape[1]
    if propensities.shape != (n_labels,) or not (propensities > 0).all():
        raise ValueError(
            f"propensity has shape {propensities.shape}; it must hold {n_labels} numbers above 0, one each."
        )
    return propensity_scored(propensities, given.k, f"k={k}")(given.y, given.score, given.weight)


def propensity_scored(propensity: FloatArray, k: int, name: str) -> MetricFunction:
    """Return the metric of the k highest scores, which errors call by `name`."""
    value = 1 / propensity

    def of_hits(y: Array, score: FloatArray) -> FloatArray:
        best = best_columns(score, k)
        true = best == y[:, np.newaxis] if y.ndim == 1 else np.take_along_axis(y, best, axis=1) == 1
        return np.asarray((value[best] * true).sum(axis=1))

    def of_best(y: Array, score: FloatArray) -> FloatArray:
        if y.ndim == 1:
            return value[y]
        worth = np.where(y == 1, value, 0.0)
        largest = np.sort(np.partition(worth, worth.shape[1] - k, axis=1)[:, -k:], axis=1)
        return np.asarray(largest[:, ::-1].sum(axis=1))

    def measured(y: Any, score: Any, weight: FloatArray | None) -> float:
        check_k(k, score.shape[1], name)
        if are_sparse(y, score, weight):
            columns = best_stored_columns(score, k)
            hits = (value[columns] * stored_at(y, columns)).sum(axis=1)
            of_best_ranking = float(weighted_mean(largest_of_rows(y, value, k), weight))
            return float(weighted_mean(hits, weight)) / of_best_ranking if of_best_ranking > 0 else 0.0
        if weight is not None and weight.ndim == 2:  # only labels that were observed are ranked
            score = np.where(weight > 0, dense(score), -np.inf)
        found, best = (mean_of_rows(of, y, score, row_weights(weight)) for of in (of_hits, of_best))
        return found / best if best > 0 else 0.0

    return measured
