"""The k highest of scores in compressed rows: nothing is as large as rows x labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import FloatArray


def best_stored_columns(score: Any, k: int) -> npt.NDArray[np.intp]:
    """Return what `best_columns` does for a CSR matrix, in which columns that are not stored have a 0.

    Parameters
    ----------
    score : CSR matrix of shape (rows, columns)
        Columns of a row differ.
    k : int
        At most the number of columns.
    """
    n_rows, n_columns = score.shape
    best = np.empty((n_rows, k), dtype=np.intp)
    data = score.data.astype(np.float64) if score.dtype == bool else score.data
    for row in range(n_rows):
        stored = slice(score.indptr[row], score.indptr[row + 1])
        column, value = score.indices[stored].astype(np.intp), data[stored]
        above = value > 0
        if np.count_nonzero(above) >= k:
            column, value = column[above], value[above]
            if len(value) > k:
                high = value >= np.partition(value, len(value) - k)[len(value) - k]
                column, value = column[high], value[high]
        else:  # the first of those that are not stored are among the best
            first = np.arange(min(n_columns, k + len(column)))
            zeros = np.setdiff1d(first, column)[:k]
            column, value = np.append(column, zeros), np.append(value, np.zeros(len(zeros)))
        best[row] = column[np.lexsort((column, -value))[:k]]
    return best


def stored_at(y: Any, columns: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """Return whether a CSR matrix has a 1 in some columns of each row, of shape (rows, columns a row)."""
    rows = np.repeat(np.arange(len(columns)), columns.shape[1])
    found = np.asarray(y[rows, columns.ravel()]).reshape(columns.shape)
    return np.asarray(found == 1)


def largest_of_rows(y: Any, worth: FloatArray, k: int) -> FloatArray:
    """Return the sum of the k largest of what the ones in each row of a CSR matrix are worth.

    Added up largest first, as a ranking is.
    """
    sums = np.zeros(y.shape[0])
    for row in range(y.shape[0]):
        stored = slice(y.indptr[row], y.indptr[row + 1])
        own = np.sort(worth[y.indices[stored][y.data[stored] == 1]])
        sums[row] = own[::-1][:k].sum()
    return sums
