"""The features that a user passes to ``fit`` and ``predict``, checked, as numbers.

What leaves this module is safe for the compiled core: NumPy arrays of a known dtype and shape, or SciPy's
compressed rows or columns, without infinities. A table of numbers is passed on as it is, in its own dtype and
memory layout, without a copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
import scipy.sparse
from sklearn.utils.validation import validate_data

from polyleaf.data.device_arrays import array_module, is_device_array, on_host
from polyleaf.data.exact_integers import (
    LARGEST_EXACT,
    inexact_integer,
    refuse_inexact,
    refuse_inexact_columns,
)
from polyleaf.data.infinities import refuse_infinity, refuse_sparse_infinity, search_infinity
from polyleaf.data.remedies import IN_X
from polyleaf.data.source import Source, is_dataset, is_path
from polyleaf.data.sparse_formats import SparseTable
from polyleaf.data.sparse_tables import read_sparse, refuse_empty
from polyleaf.data.tables import (
    Table,
    columns_of_fit,
    frame_kind,
    frame_numbers,
    objects_as_numbers,
    plain_array,
    read_frame,
    stacked,
    take_or_check_names,
)
from polyleaf.params.combinations import refused
from polyleaf.params.situation import Situation

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Cells looked at together when searching for infinities on a GPU: bounds the memory of the temporary mask.
_DEVICE_BLOCK_CELLS = 1 << 28
# What the core reads.
_CORE_DTYPES = frozenset(np.dtype(code) for code in "?bhilqBHILQfd")


def check_features(
    estimator: object, X: object, *, reset: bool, name: str = "X", n_threads: int = 1
) -> Array | SparseTable:
    """Return `X` as a 2-D array, dense or sparse, of bool, integers, float32 or float64, without infinities.

    A table to predict, which is what it is without `reset`, may have no rows.

    Parameters
    ----------
    estimator : estimator
        Takes ``n_features_in_`` and ``feature_names_in_`` if `reset`, otherwise `X` is checked against them.
    X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
        Numbers; NaN stands for a missing value. Numeric arrays are not copied, except float16 (to float32),
        longdouble (to float64), a foreign byte order, and unaligned memory. A sparse matrix stays one.
    reset : bool
        Whether this is the table of ``fit``.
    name : str, default="X"
        What errors call the table.
    n_threads : int, default=1
        Threads that look for infinities.

    Returns
    -------
    ndarray, csr_array or csc_array of shape (n_rows, n_features)
    """
    if not reset and _is_plain(X, estimator):
        refuse_inexact_columns(X, None, name, IN_X.integers)
        refuse_infinity(X, None, name, n_threads)
        return X
    table = read_table(estimator, X, reset=reset, name=name, min_rows=1 if reset else 0)
    return table_numbers(table, n_threads=n_threads)


def read_table(estimator: object, X: object, *, reset: bool, name: str = "X", min_rows: int = 1) -> Table:
    """Return `X`, of `min_rows` rows at least, with its names and the kinds of its columns.

    The other parameters are those of `check_features`.
    """
    kind = None if type(X) is np.ndarray else frame_kind(X)
    if isinstance(X, Source):
        table = X.table()
        refuse_empty(table.shape, name, min_rows)
    elif kind is not None:
        if not reset and getattr(estimator, "columns_by_name", False):
            X = columns_of_fit(estimator, X, kind)
        table = read_frame(X, kind, name, min_rows)
    elif scipy.sparse.issparse(X):
        matrix = read_sparse(X, name, min_rows)
        n_columns = matrix.shape[1]
        table = Table(name, "sparse", matrix, range(n_columns), None, np.zeros(n_columns, dtype=bool))
    elif is_device_array(X):
        table = _device_table(estimator, X, name, min_rows)
    elif is_path(X) or is_dataset(X):
        raise TypeError(
            f"{name}: {X!r:.200} would have to be read from files; here a table in memory is needed."
        )
    elif isinstance(X, list | tuple) and len(X) > 0 and all(map(is_path, X)):
        raise TypeError(
            f"{name} is a list of text such as {X[0]!r:.200}; of files, pass a folder, a pattern or "
            "pyarrow.dataset.dataset(list)."
        )
    elif type(X).__module__.partition(".")[0] == "pyarrow" and not hasattr(X, "__array__"):
        raise TypeError(
            f"{name} is a {type(X).__name__} of pyarrow; pass a table, a pyarrow.dataset.Dataset, or a path."
        )
    else:
        array = _validated_array(estimator, X, reset=reset, name=name, min_rows=min_rows)
        n_columns = array.shape[1]
        return Table(name, "array", array, range(n_columns), None, np.zeros(n_columns, dtype=bool))
    take_or_check_names(estimator, table, reset=reset)
    return table


def table_numbers(
    table: Table, codes: Mapping[int, FloatArray] | None = None, n_threads: int = 1, first_row: int = 0
) -> Array | SparseTable:
    """Return a table's cells as numbers without infinities.

    Parameters
    ----------
    table : Table
        From `read_table`.
    codes : mapping of int to float64 ndarray of shape (n_rows,), default=None
        Columns that are replaced by these numbers: the codes of categorical features.
    n_threads : int, default=1
        Threads that look for infinities.
    first_row : int, default=0
        Number of the first row, for errors: that of a part of a table.
    """
    if table.kind == "cupy":
        return _device_numbers(table, codes)  # type: ignore[no-any-return]
    if table.kind == "sparse":
        if codes:
            raise refused(Situation(table="sparse", categorical=True, words={"X": table.name}))
        _refuse_sparse_inexact(table.source, table.labels, table.name)
        refuse_sparse_infinity(table.source, table.labels, table.name)
        matrix: SparseTable = table.source
        return matrix
    if table.kind != "array":
        # The arrays in a frame may be as odd as any other.
        numbers = _as_numbers(frame_numbers(table, codes), table.labels, table.name)
    elif codes:
        numbers = stacked(
            [
                codes[j] if j in codes else _as_numbers(table.source[:, [j]], [j], table.name)[:, 0]
                for j in range(table.shape[1])
            ]
        )
    else:
        numbers = _as_numbers(table.source, table.labels, table.name)
    refuse_infinity(numbers, table.labels, table.name, n_threads, first_row)
    return numbers


def _device_table(estimator: object, X: Any, name: str, min_rows: int) -> Table:
    """Return a CuPy array as a table, or raise naming what is wrong with it."""
    if getattr(estimator, "device", "cpu") != "cuda":
        raise refused(Situation(table="cupy", device="cpu", words={"X": name}))
    if X.ndim != 2:
        raise ValueError(f"{name}: Expected 2D array, got {X.ndim}D array instead.")
    refuse_empty(X.shape, name, min_rows)
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{name} has dtype {X.dtype}; it must hold numbers (bool, integer or float).")
    n_columns = X.shape[1]
    return Table(name, "cupy", X, range(n_columns), None, np.zeros(n_columns, dtype=bool))


def _device_numbers(table: Table, codes: Mapping[int, FloatArray] | None) -> Any:
    """Return a CuPy table without infinities, in a dtype that kernels read."""
    if codes:
        raise refused(Situation(table="cupy", categorical=True, words={"X": table.name}))
    source = table.source
    may_be_large = source.dtype in (np.int64, np.uint64) and source.size > 0
    if may_be_large and max(-int(source.min()), int(source.max())) > LARGEST_EXACT:
        refuse_inexact_columns(on_host(source), table.labels, table.name, IN_X.integers)
    numbers = source.astype(np.float32) if source.dtype == np.float16 else source
    if numbers.dtype.kind == "f":
        search_infinity(numbers, table.labels, table.name, array_module(numbers), _DEVICE_BLOCK_CELLS)
    return numbers


def _validated_array(estimator: object, X: Any, *, reset: bool, name: str, min_rows: int) -> Array:
    """Return an array-like as an array, as scikit-learn reads it."""
    try:
        if np.ma.is_masked(X):  # a masked entry is a missing one
            X = np.ma.filled(X.astype(np.float64), np.nan)
        if isinstance(X, list | tuple):
            X = plain_array(X)
        array: Array = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=None,
            ensure_all_finite=False,
            ensure_min_samples=min_rows,
            accept_sparse=False,
            order=None,
        )
    except (TypeError, ValueError) as error:
        if name == "X" and "X " in str(error):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}: {error}") from error
    return array


def _is_plain(X: object, estimator: object) -> TypeGuard[Array]:
    """Whether `X` would pass all other checks as it is.

    They take longer than the prediction of a row, so that the most common table is spared them.
    """
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype in _CORE_DTYPES  # in the byte order of this machine
        and X.flags.aligned
        and X.shape[0] > 0
        and X.shape[1] == getattr(estimator, "n_features_in_", None)
        and not hasattr(estimator, "feature_names_in_")  # a table without names gets a warning
    )


def _as_numbers(table: Array, labels: Sequence[object], name: str) -> Array:
    """Convert what the core cannot read, and refuse what are no numbers."""
    kind = table.dtype.kind
    if kind == "O":
        return _objects_as_floats(table, labels, name)
    if kind not in "biuf":
        advice = IN_X.dates if kind in "mM" else "it must hold numbers (bool, integer or float)."
        raise ValueError(f"{name} has dtype {table.dtype}; {advice}")
    refuse_inexact_columns(table, labels, name, IN_X.integers)
    if kind == "f" and table.dtype.itemsize not in (4, 8):
        with np.errstate(over="ignore"):  # what overflows is reported as infinity
            return table.astype(np.float32 if table.dtype.itemsize < 4 else np.float64)
    if not table.dtype.isnative:
        return table.astype(table.dtype.newbyteorder("="))
    return table if table.flags.aligned else table.copy()


def _objects_as_floats(table: Array, labels: Sequence[object], name: str) -> FloatArray:
    columns = [
        objects_as_numbers(table[:, j], f"{name}: column {label!r}", IN_X) for j, label in enumerate(labels)
    ]
    return stacked(columns)


def _refuse_sparse_inexact(table: SparseTable, labels: Sequence[object], name: str) -> None:
    value = inexact_integer(table.data)
    if value is None:
        return
    columns = table.tocsc()
    at = int(np.flatnonzero(columns.data == value)[0])
    column = int(np.searchsorted(columns.indptr, at, side="right")) - 1
    refuse_inexact(columns.data[at : at + 1], f"{name}: column {labels[column]!r}", IN_X.integers)
