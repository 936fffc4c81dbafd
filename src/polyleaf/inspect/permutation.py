"""What a score loses when a column is shuffled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sparse_formats import SparseTable

NumberTable: TypeAlias = "Array | SparseTable"
Shuffle: TypeAlias = "Callable[[int, int], Any]"


def permutation_losses(
    table: NumberTable,
    features: Sequence[int],
    score: Callable[[NumberTable], FloatArray],
    n_repeats: int,
    seed: int,
) -> FloatArray:
    """Return what is lost by shuffling each of some columns, float64 of shape (features, repeats, scores).

    How a column is shuffled depends on the seed, its number, the repeat and the number of rows alone.

    Parameters
    ----------
    table : ndarray or sparse array of shape (rows, columns)
        As numbers; it is left as it is.
    features : sequence of int
        The columns to shuffle.
    score : callable
        From such a table to one or more scores, of which more is better.
    n_repeats : int
        How often each column is shuffled.
    seed : int
        For the shuffles.
    """
    whole = score(table)

    def order(feature: int, repeat: int) -> Any:
        return np.random.default_rng([seed, feature, repeat]).permutation(table.shape[0])

    shuffled = _shuffled_sparse if scipy.sparse.issparse(table) else _shuffled_dense
    losses = [whole - score(one) for one in shuffled(table, features, n_repeats, order)]
    return np.array(losses, dtype=np.float64).reshape(len(features), n_repeats, len(whole))


def _shuffled_dense(
    table: Any, features: Sequence[int], n_repeats: int, order: Shuffle
) -> Iterator[NumberTable]:
    """Yield one copy again and again, with one column shuffled at a time."""
    copy = np.array(table)
    for feature in features:
        for repeat in range(n_repeats):
            copy[:, feature] = table[order(feature, repeat), feature]
            yield copy
        copy[:, feature] = table[:, feature]


def _shuffled_sparse(
    table: Any, features: Sequence[int], n_repeats: int, order: Shuffle
) -> Iterator[NumberTable]:
    """The same of a sparse table, whose columns keep the number of their entries."""
    columns = scipy.sparse.csc_array(table)
    columns.sort_indices()
    for feature in features:
        entries = slice(columns.indptr[feature], columns.indptr[feature + 1])
        for repeat in range(n_repeats):
            # Row i takes the place of the row that has it in its order.
            place = np.argsort(order(feature, repeat))[columns.indices[entries]]
            ascending = np.argsort(place)
            indices, data = columns.indices.copy(), columns.data.copy()
            indices[entries], data[entries] = place[ascending], data[entries][ascending]
            yield scipy.sparse.csc_array((data, indices, columns.indptr), shape=columns.shape)
