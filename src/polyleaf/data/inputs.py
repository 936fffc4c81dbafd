"""Checks of what a user passes to ``fit`` and ``predict``: features, row weights, evaluation sets.

What leaves this module is safe for the compiled core: NumPy arrays of a known dtype and shape, or SciPy's
compressed rows or columns, without infinities. A table of numbers is passed on as it is, in its own dtype and
memory layout, without a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
import scipy.sparse
from sklearn.utils.validation import validate_data

from polyleaf import _core
from polyleaf.data.device_arrays import array_module, is_device_array, on_host
from polyleaf.data.exact_integers import (
    LARGEST_EXACT,
    inexact_integer,
    refuse_inexact,
    refuse_inexact_columns,
)
from polyleaf.data.remedies import IN_X
from polyleaf.data.source import Source, is_dataset, is_path
from polyleaf.data.sparse_formats import SparseTable
from polyleaf.data.sparse_tables import place_of_infinity, read_sparse, refuse_empty
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
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.gather import any_shard, gather_notes
from polyleaf.peers.pieces import Pieces

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Cells looked at together when searching for infinities: bounds the memory of the temporary mask.
_BLOCK_CELLS = 1 << 20
_DEVICE_BLOCK_CELLS = 1 << 28
# What the core reads.
_CORE_DTYPES = frozenset(np.dtype(code) for code in "?bhilqBHILQfd")
# Of row weights: squares of sums of weighted gradients stay within float64.
_LARGEST_TOTAL = 1e140


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
        _refuse_infinity(X, None, name, n_threads)
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
            f"{name}: {X!r:.200} is read from files by fit, predict and predict_proba alone; here a table in "
            "memory is needed."
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
        _refuse_sparse_infinity(table.source, table.labels, table.name)
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
    _refuse_infinity(numbers, table.labels, table.name, n_threads, first_row)
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


def _refuse_infinity(
    table: Array, labels: Sequence[object] | None, name: str, n_threads: int, first_row: int = 0
) -> None:
    """Raise naming the first infinity; `labels` None: columns are called by their numbers."""
    if table.dtype.kind == "f" and _core.has_infinity(table, n_threads):
        search_infinity(table, labels, name, first_row=first_row)


def search_infinity(
    table: Any,
    labels: Sequence[object] | None,
    name: str,
    xp: Any = np,
    block_cells: int = _BLOCK_CELLS,
    first_row: int = 0,
) -> None:
    """Raise naming the first infinity of a table of floats, if there is one.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
        Of NumPy, or of the module `xp`.
    labels : sequence or None
        What the columns are called; None: by their numbers.
    name : str
        What the error calls the table.
    xp : module, default=numpy
        numpy or cupy.
    block_cells : int
        Cells looked at together: bounds the memory of the temporary mask.
    first_row : int, default=0
        Number of the first row.
    """
    by_column = table.flags.f_contiguous and not table.flags.c_contiguous
    lines = table.T if by_column else table
    step = max(1, block_cells // max(1, lines.shape[1]))
    for start in range(0, len(lines), step):
        found = xp.isinf(lines[start : start + step])
        if found.any():
            line, place = map(int, xp.argwhere(found)[0])
            row, column = (place, line + start) if by_column else (line + start, place)
            label = column if labels is None else labels[column]
            raise ValueError(
                f"{name} contains infinity or a value too large for {table.dtype}: {table[row, column]} in "
                f"row {first_row + row}, column {label!r}. Allowed are finite numbers and NaN (missing)."
            )


def _refuse_sparse_inexact(table: SparseTable, labels: Sequence[object], name: str) -> None:
    value = inexact_integer(table.data)
    if value is None:
        return
    columns = table.tocsc()
    at = int(np.flatnonzero(columns.data == value)[0])
    column = int(np.searchsorted(columns.indptr, at, side="right")) - 1
    refuse_inexact(columns.data[at : at + 1], f"{name}: column {labels[column]!r}", IN_X.integers)


def _refuse_sparse_infinity(table: SparseTable, labels: Sequence[object], name: str) -> None:
    if table.data.dtype.kind != "f" or not _core.has_infinity(table.data[:, np.newaxis], 1):
        return
    place = place_of_infinity(table)
    if place is not None:
        row, column, value = place
        raise ValueError(
            f"{name} contains infinity or a value too large for {table.dtype}: {value} in row {row}, column "
            f"{labels[column]!r}. Allowed are finite numbers and NaN (missing)."
        )


def check_weights(weight: object, n_rows: int, name: str = "sample_weight") -> FloatArray | None:
    """Return row weights as float64 of shape (n_rows,).

    Raises
    ------
    ValueError
        For a wrong shape, a negative or non-finite weight, only zeros, or a sum that overflows.
    """
    if weight is None:
        return None
    weights = as_float64(weight, name)
    if weights.shape != (n_rows,):
        raise ValueError(
            f"{name} has shape {weights.shape}; it must hold one weight per row, shape ({n_rows},)."
        )
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{name} must be finite and >= 0; got {weights[row]} in row {row}.")
    if not any_shard(bool(weights.any())):
        raise ValueError(f"{name} is zero in all rows; at least one weight must be greater than 0.")
    return check_total(weights, name)


def check_total(weights: FloatArray | None, name: str) -> FloatArray | None:
    """Return weights whose sum is within range, or raise ValueError."""
    if weights is None:
        return None
    with np.errstate(over="ignore"):
        total = sum(gather_notes(float(weights.sum())))
    if not 1 / _LARGEST_TOTAL <= total <= _LARGEST_TOTAL:
        raise ValueError(
            f"{name} is too large or too small: the weights sum to {total}, allowed is "
            f"{1 / _LARGEST_TOTAL:g} to {_LARGEST_TOTAL:g}."
        )
    return weights


def read_only(values: Array) -> Array:
    """Return a view that cannot be written to, for functions that are not ours."""
    view = values.view()
    view.flags.writeable = False
    return view


def as_float64(values: object, name: str) -> FloatArray:
    """Return any array-like of real numbers as a float64 array, or raise naming it."""
    if scipy.sparse.issparse(values):
        raise TypeError(f"{name} is sparse; it must be a dense array.")
    values = on_host(values)
    if np.ma.is_masked(values):
        raise ValueError(f"{name} is a masked array with masked (missing) entries, which are not allowed.")
    try:
        array = np.asarray(values)
        if array.dtype.kind in "biufO":
            with np.errstate(over="ignore"):
                return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must hold numbers: {error}") from error
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {array.dtype}.")
    raise ValueError(f"{name} has dtype {array.dtype}; it must hold numbers.")


@dataclass(frozen=True)
class EvalInput:
    """One evaluation set as the user gave it, with the names for errors and for ``evals_result_``.

    Of a table that is in several shards, `pieces` says which parts of it these rows are.
    """

    name: str
    X: object
    y: object
    weight: object
    X_name: str
    y_name: str
    weight_name: str
    pieces: Pieces | None = None

    def connected(self, peers: Collectives) -> EvalInput:
        """Return rows in pieces that are connected with the others by `peers`."""
        assert self.pieces is not None
        return replace(self, pieces=replace(self.pieces, peers=peers))


def read_eval_sets(
    eval_set: object, eval_sample_weight: object, source_kind: Callable[[Any], object] = lambda X: None
) -> list[EvalInput]:
    """Bring `eval_set` and `eval_sample_weight` into one form.

    Parameters
    ----------
    eval_set : None, tuple (X, y), list of such tuples, or dict of name and tuple
        Rows that are not trained on.
    eval_sample_weight : None, array-like, list of (None or array-like), or dict
        Weights in the same form: an array for one tuple, a list for a list, a dict for a dict.
    source_kind : callable
        Tells a source from other objects: one of batches, which bring y along, needs no tuple.

    Returns
    -------
    list of EvalInput
        With the names of the dict, or else "validation_0", "validation_1", ...
    """
    if eval_set is None:
        if eval_sample_weight is not None:
            raise refused(Situation(n_eval_sets=0, eval_weights=True))
        return []

    def in_tuple(pair: object) -> object:
        is_pair = isinstance(pair, tuple | list | Mapping)
        return (pair, None) if not is_pair and source_kind(pair) == "batches" else pair

    eval_set = in_tuple(eval_set)
    if isinstance(eval_set, tuple):
        return [
            _eval_input("validation_0", "eval_set[0]", eval_set, eval_sample_weight, "eval_sample_weight")
        ]
    if isinstance(eval_set, list):
        weights = _one_per_set(eval_sample_weight, len(eval_set))
        return [
            _eval_input(
                f"validation_{i}", f"eval_set[{i}]", in_tuple(pair), weight, f"eval_sample_weight[{i}]"
            )
            for i, (pair, weight) in enumerate(zip(eval_set, weights, strict=True))
        ]
    if isinstance(eval_set, Mapping):
        by_name = _by_name(eval_sample_weight, eval_set)
        return [
            _eval_input(
                name,
                f"eval_set[{name!r}]",
                in_tuple(pair),
                by_name.get(name),
                f"eval_sample_weight[{name!r}]",
            )
            for name, pair in eval_set.items()
        ]
    raise TypeError(
        "eval_set must be a tuple (X, y), a list of such tuples or a dict of names and tuples; got "
        f"{type(eval_set).__name__}."
    )


def _eval_input(name: str, place: str, pair: object, weight: object, weight_name: str) -> EvalInput:
    if not isinstance(pair, tuple | list):
        raise TypeError(f"{place} must be a tuple (X, y); got {type(pair).__name__}.")
    if len(pair) != 2:
        raise ValueError(f"{place} must be a tuple (X, y); got {len(pair)} elements.")
    return EvalInput(name, pair[0], pair[1], weight, f"X of {place}", f"y of {place}", weight_name)


def _by_name(weights: object, sets: Mapping[Any, object]) -> Mapping[Any, object]:
    for name in sets:
        if not isinstance(name, str):
            raise TypeError(f"the names in eval_set must be str; got {name!r} of type {type(name).__name__}.")
    if weights is None:
        return {}
    if not isinstance(weights, Mapping):
        raise TypeError(
            "eval_sample_weight must be a dict with the weights of the evaluation sets, as eval_set is a "
            f"dict; got {type(weights).__name__}."
        )
    for name in weights:
        if name not in sets:
            raise ValueError(
                f"eval_sample_weight has {name!r}, but eval_set has only {', '.join(map(repr, sets))}."
            )
    return weights


def _one_per_set(weights: object, n_sets: int) -> Sequence[object]:
    if weights is None:
        return [None] * n_sets
    if not isinstance(weights, list | tuple):
        raise TypeError(
            "eval_sample_weight must be a list with the weights (or None) of each evaluation set, as "
            f"eval_set is a list; got {type(weights).__name__}."
        )
    if len(weights) != n_sets:
        raise ValueError(f"eval_sample_weight has {len(weights)} entries, but eval_set has {n_sets}.")
    return weights
