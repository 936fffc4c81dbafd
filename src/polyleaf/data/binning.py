"""From a numeric table to bins: cut points of each column, and the code of each cell."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from polyleaf import _core
from polyleaf.data.inputs import Array, FloatArray


def bin_table(
    X: Array,
    weight: FloatArray | None,
    max_bins: int | None,
    n_threads: int,
    categorical: npt.NDArray[np.uint8] | None = None,
) -> _core.BinnedMatrix:
    """Return the table as bin codes.

    Each column gets at most `max_bins` bins of about equal weight (one per distinct value where there are
    few), bounded halfway between observed values: bin b holds the x with ``cuts[b - 1] < x <= cuts[b]``.
    Missing values have a bin of their own after those. All rows count, not a sample of them. The table is
    read in place, whatever its dtype and strides.

    Parameters
    ----------
    X : ndarray of shape (rows, features)
        bool, integer, float32 or float64; NaN is missing; no infinities.
    weight : float64 ndarray of shape (rows,) or None
        Weight of each row in the distribution of a column.
    max_bins : int or None
        2 to 65,534, the missing bin not counted. None: one bin per distinct value, at most 65,535 of them.
    n_threads : int
        Number of threads.
    categorical : uint8 ndarray of shape (features,) or None
        1 where a column holds categories: whole numbers from 0 to 9,999, each of which gets a bin of its own,
        whatever `max_bins` is. None: no column does.
    """
    return _core.bin_table(X, weight, max_bins, n_threads, categorical)
