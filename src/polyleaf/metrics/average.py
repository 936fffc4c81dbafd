"""Means over rows and cells, and the rows or columns that are measured together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sums import column_sums, largest, weighted_mean

if TYPE_CHECKING:
    # SciPy's classes take parameters in newer versions only.
    CsrMatrix = scipy.sparse.csr_array[Any, tuple[int, int]] | scipy.sparse.csr_matrix[Any]

MetricFunction = Callable[["Array | CsrMatrix", "FloatArray | CsrMatrix", FloatArray | None], float]
RowLoss = Callable[[Array, FloatArray], FloatArray]  # of each row
CellLoss = Callable[[Array, FloatArray], FloatArray]  # of each row and column

# Cells computed together: the temporaries of a wide prediction stay in the cache, not in memory beside it.
BLOCK_CELLS = 1 << 16


def mean_of_rows(loss: RowLoss, y: Any, prediction: Any, weight: FloatArray | None) -> float:
    """Return the mean over the rows of a loss that each of them has, computed a block of rows at a time.

    Parameters
    ----------
    loss : callable (y, prediction) -> float64 ndarray of shape (rows,)
        Gets dense rows.
    y, prediction : ndarray or CSR matrix
        Targets and predictions.
    weight : float64 ndarray of shape (rows,), or None
        Of the rows.
    """
    n_rows, n_columns = prediction.shape
    if n_rows * n_columns <= BLOCK_CELLS:
        return float(weighted_mean(loss(dense(y), dense(prediction)), weight))
    losses = np.empty(n_rows)
    for rows, some_y, some_prediction in _blocks(y, prediction):
        losses[rows] = loss(some_y, some_prediction)
    return float(weighted_mean(losses, weight))


def mean_of_cells(loss: CellLoss, y: Any, prediction: Any, weight: FloatArray | None) -> float:
    """Return the mean over all cells of a loss that each of them has; the weights may be those of cells."""
    if weight is None or weight.ndim == 1:
        return mean_of_rows(lambda y, p: mean_of_columns(loss(y, p)), y, prediction, weight)
    most = largest(weight, axis=None)  # sums of tiny or huge weights stay within float64
    sums = np.empty((prediction.shape[0], 2))  # of each row's weighted losses, and of its weights
    for rows, some_y, some_prediction in _blocks(y, prediction):
        shares = weight[rows] / most
        sums[rows, 0] = (loss(some_y, some_prediction) * shares).sum(axis=1)
        sums[rows, 1] = shares.sum(axis=1)
    weighted, total = column_sums(sums)
    return float(weighted / total)


def row_mean(loss: RowLoss) -> MetricFunction:
    """Return the metric that is the mean of a loss of rows."""
    return lambda y, prediction, weight: mean_of_rows(loss, y, prediction, weight)


def cell_mean(loss: CellLoss) -> MetricFunction:
    """Return the metric that is the mean of a loss of cells."""
    return lambda y, prediction, weight: mean_of_cells(loss, y, prediction, weight)


def mean_of_columns(cells: FloatArray) -> FloatArray:
    """Return the mean of each row's cells."""
    mean: FloatArray = np.add.reduce(cells, axis=1) / cells.shape[1]  # what `mean` does, without its checks
    return mean


def row_weights(weight: FloatArray | None) -> FloatArray | None:
    """Return weights of rows: those of cells by their mean."""
    return weight if weight is None or weight.ndim == 1 else mean_of_columns(weight)


def dense(rows: Any) -> Array:
    """Return some rows as a dense array."""
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)


def column_blocks(y: Any, prediction: Any) -> Iterator[tuple[slice, Array, Array]]:
    """Yield some columns at a time, and the targets and predictions of these as dense arrays.

    What is summed over the rows of a column is then summed at once: its bits do not depend on their order.
    """
    if hasattr(y, "tocsc"):
        y = y.tocsc()
    if hasattr(prediction, "tocsc"):
        prediction = prediction.tocsc()
    n_rows, n_columns = prediction.shape
    n_rows = int(largest(np.array([n_rows]), None))  # shards take the same steps
    step = max(1, BLOCK_CELLS // max(1, n_rows))
    for start in range(0, n_columns, step):
        columns = slice(start, start + step)
        yield columns, dense(y[:, columns]), dense(prediction[:, columns])


def shares(weight: FloatArray | None) -> FloatArray | None:
    """Return weights as shares of the largest: sums of tiny or huge ones stay within float64."""
    return weight if weight is None else weight / largest(weight, None, np.finfo(np.float64).tiny)


def cells_of(weight: FloatArray | None, columns: slice) -> FloatArray | None:
    """Return the weights of some columns: those of cells, or those of rows, which all columns share."""
    return weight if weight is None or weight.ndim == 1 else weight[:, columns]


def _blocks(y: Any, prediction: Any) -> Iterator[tuple[slice, Array, Array]]:
    """Yield some rows at a time, and the targets and predictions of these as dense arrays."""
    n_rows, n_columns = prediction.shape
    step = max(1, BLOCK_CELLS // n_columns)
    for start in range(0, n_rows, step):
        rows = slice(start, start + step)
        yield rows, dense(y[rows]), dense(prediction[rows])
