"""From a numeric table to bins: cut points of each column, and the code of each cell."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from polyleaf import _core
from polyleaf.data.dataset import Dataset
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.shared_binning import bin_shard
from polyleaf.data.sparse_formats import SparseTable
from polyleaf.data.sparse_tables import dense_columns
from polyleaf.params.settings import Settings


def bin_table(
    X: Array | SparseTable,
    weight: FloatArray | None,
    max_bins: int | None,
    n_threads: int,
    categorical: npt.NDArray[np.uint8] | None = None,
) -> _core.BinnedMatrix:
    """Return the table as bin codes.

    Each column gets at most `max_bins` bins of about equal weight (one per distinct value where there are
    few), bounded halfway between observed values: bin b holds the x with ``cuts[b - 1] < x <= cuts[b]``.
    Missing values have a bin of their own after those. All rows count, not a sample of them. The table is
    read in place, whatever its dtype and strides; a sparse one is made dense some columns at a time. The
    codes are dense, one or two bytes a cell.

    Parameters
    ----------
    X : ndarray, csr_array or csc_array of shape (rows, features)
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
    if isinstance(X, np.ndarray):
        return _core.bin_table(X, weight, max_bins, n_threads, categorical=categorical)
    assert categorical is None  # columns of a sparse table are numbers
    parts = [
        _core.bin_table(block, weight, max_bins, n_threads, first_column=first)
        for first, block in dense_columns(X)
    ]
    return parts[0] if len(parts) == 1 else _core.join_columns(parts, n_threads)


def bin_data(data: Dataset, settings: Settings) -> _core.BinnedMatrix:
    """Return the table of the training rows as bin codes."""
    if data.shard is not None:
        assert isinstance(data.X, np.ndarray)
        return bin_shard(
            data.X,
            data.weights.row,
            settings.max_bins,
            settings.n_threads,
            settings.categorical,
            data.shard,
        )
    return bin_table(data.X, data.weights.row, settings.max_bins, settings.n_threads, settings.categorical)
