"""From a numeric table to bins: cut points of each column, and the code of each cell."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse

from polyleaf import _core
from polyleaf.data.binned_rows import BinnedRows
from polyleaf.data.dataset import Dataset, FeatureTable
from polyleaf.data.device_arrays import on_host
from polyleaf.data.inputs import FloatArray
from polyleaf.data.shared_binning import bin_shard
from polyleaf.data.sparse_formats import SparseTable
from polyleaf.data.sparse_tables import cells_by_columns, dense_columns
from polyleaf.data.streamed_table import StreamedTable
from polyleaf.params.settings import Settings


def bin_table(
    X: FeatureTable,
    weight: FloatArray | None,
    max_bins: int | None,
    n_threads: int,
    categorical: npt.NDArray[np.uint8] | None = None,
) -> _core.BinnedMatrix:
    """Return the table as bin codes.

    Each column gets at most `max_bins` bins of about equal weight (one per distinct value where there are
    few), bounded halfway between observed values: bin b holds the x with ``cuts[b - 1] < x <= cuts[b]``.
    Missing values have a bin of their own after those. All rows count, not a sample of them. The table is
    read in place, whatever its dtype and strides; a streamed one is read some columns at a time. The codes
    are dense, one or two bytes a cell, of a sparse table, too.

    Parameters
    ----------
    X : ndarray, csr_array, csc_array, StreamedTable or BinnedRows of shape (rows, features)
        bool, integer, float32 or float64; NaN is missing; no infinities. Of rows that are binned already, the
        codes they have are returned.
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
    if isinstance(X, BinnedRows):
        return X.matrix
    if not isinstance(X, StreamedTable):
        assert categorical is None  # columns of a sparse table are numbers
        return bin_sparse(X, weight, max_bins, n_threads)
    parts = []
    for first, panel, threads in X.panels(n_threads, weighted=weight is not None):
        own = None if categorical is None else categorical[first : first + panel.shape[1]]
        parts.append(_core.bin_table(panel, weight, max_bins, threads, first, own))
        del panel  # before the next one is read
    return parts[0] if len(parts) == 1 else _core.join_columns(parts, n_threads)


def bin_sparse(
    X: SparseTable,
    weight: FloatArray | None,
    max_bins: int | None,
    n_threads: int,
    *,
    least_rows: int = 0,
    keeps_codes: bool = True,
) -> _core.BinnedMatrix:
    """Return a sparse table as bins, those that it has as a dense one.

    Parameters
    ----------
    X : csr_array or csc_array of shape (rows, features)
        As in `bin_table`.
    weight, max_bins, n_threads
        As in `bin_table`.
    least_rows : int, default=0
        Columns are left out if each split by them, of all rows or of some, leaves fewer rows on one side:
        they have one bin, and trees that are to have as many rows in each leaf do without them. 0: none are.
    keeps_codes : bool, default=True
        Whether there is a code for each cell. False: of columns with few cells outside of their most frequent
        bin, these cells are all that is kept. Such a table cannot be taken apart.
    """
    return _core.bin_sparse(cells_by_columns(X), weight, max_bins, n_threads, least_rows, keeps_codes)


def bin_like(X: FeatureTable, table: _core.BinnedMatrix, n_threads: int) -> _core.BinnedMatrix:
    """Return other rows as codes of the bins of a table; missing values have a bin in every column.

    Parameters
    ----------
    X : ndarray, csr_array, csc_array or StreamedTable of shape (rows, features)
        As in `bin_table`; categories that the table does not have are missing.
    table : BinnedMatrix
        Whose cut points are taken.
    n_threads : int
        Number of threads.
    """
    if isinstance(X, np.ndarray):
        return _bins_of(table, 0, X.shape[1]).bin_like(X, n_threads)
    assert not isinstance(X, BinnedRows)
    parts = []
    panels = (
        ((first, panel) for first, panel, _ in X.panels(n_threads, weighted=False))
        if isinstance(X, StreamedTable)
        else dense_columns(X)
    )
    for first, panel in panels:
        parts.append(_bins_of(table, first, first + panel.shape[1]).bin_like(panel, n_threads))
        del panel  # before the next one is read
    return parts[0] if len(parts) == 1 else _core.join_columns(parts, n_threads)


def _bins_of(table: _core.BinnedMatrix, first: int, end: int) -> _core.BinnedMatrix:
    """Return a table of no rows with the bins of some columns, and with one for missing values in each."""
    categorical = _core.parts_of_table(table)["categorical"]
    return _core.table_of_cuts(
        [table.cuts(feature) for feature in range(first, end)],
        np.ones(end - first, dtype=np.uint8),
        [table.categories(feature) if categorical[feature] else None for feature in range(first, end)],
    )


def are_same_for_cuts(weight: FloatArray | None, other: FloatArray | None) -> bool:
    """Whether cut points of rows with these weights are the same, whatever the rows are; None: equal ones."""
    given = [one for one in (weight, other) if one is not None and (one != one[0]).any()]
    if len(given) < 2:
        return not given
    first, second = map(_core.weight_units, given)
    return np.array_equal(first, second)


def bin_data(data: Dataset, settings: Settings, least_rows: int = 0) -> _core.BinnedMatrix:
    """Return the table of the training rows as bins, for one run or several.

    Parameters
    ----------
    data : Dataset
        The rows.
    settings : Settings
        Of the runs.
    least_rows : int, default=0
        What `min_samples_leaf` is at least in all runs: columns of a sparse table that it forbids to split
        are left out. 0: the codes of all columns are needed.
    """
    if data.shard is not None and not isinstance(data.X, BinnedRows):
        assert isinstance(data.X, np.ndarray)
        return bin_shard(
            data.X,
            data.weights.row,
            settings.max_bins,
            settings.n_threads,
            settings.categorical,
            data.shard,
        )
    if scipy.sparse.issparse(data.X):
        return bin_sparse(
            data.X,
            data.weights.row,
            settings.max_bins,
            settings.n_threads,
            least_rows=least_rows,
            # A GPU gets them all, and where labels are sparse, columns are looked at one by one.
            keeps_codes=settings.device != "cpu" or scipy.sparse.issparse(data.y),
        )
    table = on_host(data.X)
    return bin_table(table, data.weights.row, settings.max_bins, settings.n_threads, settings.categorical)
