"""Tables of features as people bring them: frames of pandas, polars and pyarrow, arrays, sparse matrices.

A `Table` is the user's table with what its columns say about themselves. `frame_numbers` turns a data frame
into one array of numbers: missing cells become NaN, and what are no numbers is refused by the column's name.
None of the libraries is imported here: whoever passes a frame has imported its library already.
"""

from __future__ import annotations

import datetime
import numbers
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt

from polyleaf.data.exact_integers import refuse_inexact
from polyleaf.data.remedies import IN_X, Remedies
from polyleaf.data.sparse_tables import read_sparse, refuse_empty

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
FrameKind = Literal["pandas", "polars", "pyarrow"]
TableKind: TypeAlias = FrameKind | Literal["array", "sparse", "cupy", "stream", "binned"]

_HOW_MANY_TO_NAME = 5
# Numbers that NumPy has no dtype for.
_BEYOND_NUMPY = (nw.Decimal, nw.Int128, nw.UInt128)
# pandas' are subclasses of these.
_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
# Those of NumPy that polars and pyarrow have, too, by the names of either.
_PLAIN_DTYPES = {"double", "float", "float32", "float64"}
_PLAIN_DTYPES |= {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
_LARGE_INTEGERS = (nw.Int64, nw.UInt64, nw.Int128, nw.UInt128)


@dataclass(frozen=True)
class Table:
    """A table of features before its cells are turned into numbers.

    Attributes
    ----------
    name : str
        What errors call the table.
    kind : {"pandas", "polars", "pyarrow", "array", "sparse", "cupy", "stream", "binned"}
        What `source` is.
    source : DataFrame, pyarrow.Table, ndarray, csr_array, csc_array, CuPy array, Source or BinnedTable
        The table itself, or where it is read from.
    labels : sequence
        What errors call the columns: their names, or their numbers.
    names : tuple of str or None
        The feature names; None when the table has none, or names that are no str.
    categorical : bool ndarray of shape (features,)
        Columns of a categorical dtype.
    """

    name: str
    kind: TableKind
    source: Any
    labels: Sequence[Any]
    names: tuple[str, ...] | None
    categorical: npt.NDArray[np.bool_]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        rows, features = self.source.shape
        return int(rows), int(features)

    @cached_property
    def _pandas_columns(self) -> list[Any]:
        """The columns of a pandas frame, which takes its time to give them one by one."""
        return [column for _, column in self.source.items()]

    def column(self, j: int) -> Any:
        """Return column `j` as the table holds it: a Series, a ChunkedArray, or an array."""
        if self.kind == "pandas":
            return self._pandas_columns[j]
        if self.kind == "sparse":
            return self.source[:, [j]].toarray()[:, 0]
        if self.kind == "cupy":
            return self.source[:, j].get()
        if self.kind == "stream":
            return self.source.column(j)
        return self.source[:, j] if self.kind == "array" else _native_column(self.source, self.kind, j)

    def is_ordered(self, j: int) -> bool:
        """Whether the dtype of column `j` says that its categories have an order."""
        if self.kind == "stream":
            return bool(self.source.is_ordered(j))
        column = self.column(j)
        dtype = column.type if self.kind == "pyarrow" else column.dtype
        return bool(getattr(dtype, "ordered", False))


# --- reading -----------------------------------------------------------------------------------------------


def frame_kind(X: object) -> FrameKind | None:
    """Return which library's data frame `X` is, None when it is none."""
    is_a = nw.dependencies
    if is_a.is_pandas_dataframe(X):
        return "pandas"
    if is_a.is_polars_dataframe(X):
        return "polars"
    if is_a.is_polars_lazyframe(X):
        raise TypeError(
            "got a polars LazyFrame, whose rows are not known yet: fit, predict and score take one as X; "
            "elsewhere call its collect() first."
        )
    return "pyarrow" if is_a.is_pyarrow_table(X) or _is_record_batch(X) else None


def series_kind(y: object) -> FrameKind | None:
    """Return which library's one column `y` is, None when it is none."""
    is_a = nw.dependencies
    if is_a.is_pandas_series(y):
        return "pandas"
    if is_a.is_polars_series(y):
        return "polars"
    return "pyarrow" if is_a.is_pyarrow_chunked_array(y) or _is_arrow_array(y) else None


def read_frame(X: Any, kind: FrameKind, name: str, min_rows: int = 1) -> Table:
    """Return a data frame as a table, its columns checked for what can be told without reading a cell."""
    X = whole_frame(X)
    labels = frame_labels(X, kind, name)
    refuse_empty((int(X.shape[0]), int(X.shape[1])), name, min_rows)
    names = feature_names(labels, name)
    if kind == "pandas" and _is_sparse_frame(X):
        matrix = read_sparse(X.sparse.to_coo().tocsc(), name, min_rows)
        return Table(name, "sparse", matrix, labels, names, np.zeros(len(labels), dtype=bool))
    return Table(name, kind, X, labels, names, _categorical_dtypes(X, kind))


def whole_frame(X: Any) -> Any:
    """Return a frame; a record batch of pyarrow becomes a table."""
    return sys.modules["pyarrow"].Table.from_batches([X]) if _is_record_batch(X) else X


def frame_labels(X: Any, kind: FrameKind, name: str) -> list[Any]:
    """Return the labels of a frame's columns, which must be distinct and have one level."""
    if kind == "pandas" and X.columns.nlevels > 1:
        raise ValueError(
            f"{name}: its columns are a MultiIndex of {X.columns.nlevels} levels, such as {X.columns[0]!r}; "
            "give each column one name."
        )
    labels = list(X.column_names if kind == "pyarrow" else X.columns)
    if len(set(labels)) < len(labels):
        seen: set[Any] = set()
        twice = next(label for label in labels if label in seen or seen.add(label))  # type: ignore[func-returns-value]
        raise ValueError(f"{name}: column {twice!r} is there more than once; column names must be distinct.")
    return labels


def feature_names(labels: Sequence[object], name: str) -> tuple[str, ...] | None:
    """Return labels that are all str, None when none is; a mixture is refused, as in scikit-learn."""
    words = tuple(label for label in labels if isinstance(label, str))
    if not words:
        return None
    if len(words) < len(labels):
        types = sorted({type(label).__qualname__ for label in labels})
        raise TypeError(
            f"{name}: Feature names are only supported if all input features have string names, but your "
            f"input has {types} as feature name / column name types. Make all of them str, or none."
        )
    return words


def take_or_check_names(estimator: Any, table: Table, *, reset: bool) -> None:
    """Give the estimator the table's number of features and names, or compare them with those of ``fit``.

    A table without names where there were some in ``fit``, or the other way round, is worth a warning, as in
    scikit-learn.
    """
    n_features = table.shape[1]
    if reset:
        estimator.n_features_in_ = n_features
        if table.names is not None:
            estimator.feature_names_in_ = np.array(table.names, dtype=object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        return
    fitted = getattr(estimator, "feature_names_in_", None)
    who = type(estimator).__name__
    if fitted is not None and table.names is None:
        warnings.warn(
            f"{table.name} does not have valid feature names, but {who} was fitted with feature names",
            UserWarning,
            stacklevel=2,
        )
    elif fitted is None and table.names is not None:
        warnings.warn(
            f"{table.name} has feature names, but {who} was fitted without feature names",
            UserWarning,
            stacklevel=2,
        )
    elif fitted is not None and table.names is not None and list(fitted) != list(table.names):
        raise ValueError(f"{table.name}: {_difference(list(fitted), list(table.names), table.kind)}")
    if n_features != estimator.n_features_in_:
        raise ValueError(
            f"{table.name} has {n_features} features, but {who} is expecting {estimator.n_features_in_} "
            "features as input."
        )


def columns_of_fit(estimator: Any, X: Any, kind: FrameKind) -> Any:
    """Return a frame with the columns that ``fit`` had, in their order; as it is where one is missing."""
    fitted = list(getattr(estimator, "feature_names_in_", ()))
    frame = whole_frame(X)
    there = frame.column_names if kind == "pyarrow" else frame.columns
    if not fitted or not set(fitted) <= set(there):
        return X
    return frame[fitted] if kind == "pandas" else frame.select(fitted)


def _difference(fitted: list[str], given: list[str], kind: TableKind) -> str:
    """Say how the feature names differ, in scikit-learn's words, and what to do where all are there."""
    text = "The feature names should match those that were passed during fit.\n"
    unseen, missing = sorted(set(given) - set(fitted)), sorted(set(fitted) - set(given))
    if unseen:
        text += "Feature names unseen at fit time:\n" + _listed(unseen)
    if missing:
        text += "Feature names seen at fit time, yet now missing:\n" + _listed(missing)
    if not unseen and not missing:
        at = next(j for j, (a, b) in enumerate(zip(fitted, given, strict=True)) if a != b)
        text += (
            "Feature names must be in the same order as they were in fit.\n"
            f"Column {at} was {fitted[at]!r} in fit, and is {given[at]!r} now.\n"
        )
    if not missing:
        by_name = "X[model.feature_names_in_]"
        chosen = by_name if kind in ("pandas", "sparse") else "X.select(list(model.feature_names_in_))"
        text += "A model with columns_by_name=True takes the columns of fit in their order; so does this:\n"
        text += f"{chosen}\n"
    return text


def _listed(names: list[str]) -> str:
    lines = "".join(f"- {name}\n" for name in names[:_HOW_MANY_TO_NAME])
    return lines if len(names) <= _HOW_MANY_TO_NAME else f"{lines}- ...\n"


def text_columns(table: Table) -> npt.NDArray[np.bool_]:
    """Return which columns hold text, alone or among other objects."""
    if table.kind in ("sparse", "cupy") or (table.kind == "array" and table.source.dtype.kind in "biuf"):
        return np.zeros(table.shape[1], dtype=bool)
    if table.kind == "stream":
        found: npt.NDArray[np.bool_] = table.source.text
        return found
    return np.array([_holds_text(table.column(j)) for j in range(table.shape[1])], dtype=bool)


def _holds_text(column: Any) -> bool:
    if isinstance(column, np.ndarray):
        return column.dtype.kind in "UT" or any(isinstance(cell, str) for cell in column.tolist())
    series = _series(column)
    if series.dtype == nw.Object:
        return any(isinstance(cell, str) for cell in series.to_list())
    return bool(series.dtype == nw.String)


def plain_array(values: object) -> Array:
    """Return an array-like as an array, in which the cells of lists with text keep their Python types."""
    array = np.asarray(values)
    # NumPy makes strings of numbers and NaNs that share a list with strings.
    if array.dtype.kind in "US" and isinstance(values, list | tuple):
        return np.asarray(values, dtype=object)
    return array


# --- numbers -----------------------------------------------------------------------------------------------


def frame_numbers(
    table: Table, codes: Mapping[int, FloatArray] | None = None, remedies: Remedies = IN_X
) -> Array:
    """Return the cells of a data frame as one array of numbers.

    A frame that is one array inside (pandas) is not copied. Otherwise the columns are copied once, into an
    array of the smallest dtype that holds all of theirs.

    Parameters
    ----------
    table : Table
        A pandas, polars or pyarrow frame.
    codes : mapping of int to float64 ndarray, default=None
        Columns to be replaced: the codes of categorical features.
    remedies : Remedies
        What errors advise.
    """
    codes = codes or {}
    whole = None if codes else _as_one_array(table)
    if whole is not None:
        return whole
    place = f"{table.name}: column"
    columns = [
        codes[j] if j in codes else _column_numbers(table.column(j), f"{place} {label!r}", remedies)
        for j, label in enumerate(table.labels)
    ]
    return stacked(columns)


def stacked(columns: Sequence[Array]) -> Array:
    """Return columns of numbers as a table of their common dtype, column by column in memory."""
    if len(columns) == 1:
        return columns[0][:, np.newaxis]
    dtype = np.result_type(*{column.dtype for column in columns})
    table = np.empty((len(columns[0]), len(columns)), dtype=dtype, order="F")
    for j, column in enumerate(columns):
        table[:, j] = column
    return table


def _as_one_array(table: Table) -> Array | None:
    """Return a frame of plain columns by its own conversion, which copies least; None for other frames."""
    if table.kind == "pandas":
        dtypes = set(table.source.dtypes)
        if all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in dtypes):
            common = np.result_type(*dtypes)
            if common.kind != "f" or not any(dtype in (np.int64, np.uint64) for dtype in dtypes):
                array: Array = table.source.to_numpy(dtype=common)
                return array
    if table.kind == "polars" and len(set(table.source.dtypes)) == 1:
        frame = nw.from_native(table.source, eager_only=True)
        dtype = frame.schema.dtypes()[0]
        if dtype in (nw.Float32, nw.Float64) or (
            dtype.is_integer() and dtype not in _BEYOND_NUMPY and _has_no_null(table.source)
        ):
            columns: Array = table.source.to_numpy(order="fortran")
            return columns
    return None


def _has_no_null(frame: Any) -> bool:
    return not any(frame.get_column(label).null_count() for label in frame.columns)


def _column_numbers(native: Any, where: str, remedies: Remedies) -> Array:
    """Return one column as numbers, or raise naming it."""
    plain = _plain_numbers(native)  # which spares a single row most of the time it takes
    if plain is not None:
        refuse_inexact(plain, where, remedies.integers)
        return plain.astype(np.float32) if plain.dtype == np.float16 else plain
    series = _series(native)
    if _is_categorical(series):
        advice = "it is not among the categorical features." if remedies is IN_X else remedies.text
        raise ValueError(f"{where} holds no numbers but categories{_example(series)}; {advice}")
    values = series_numbers(series, where, remedies)
    if values is not None:
        refuse_inexact(values, where, remedies.integers)
        return values
    if series.dtype == nw.Object:
        return objects_as_numbers(series.to_numpy(), where, remedies)
    if series.dtype == nw.String:
        text = _spoiling(series.drop_nulls().to_list())
        raise ValueError(f"{where} holds no numbers but text such as {text!r}; {remedies.text}")
    advice = remedies.dates if series.dtype.is_temporal() else "it must hold numbers."
    raise ValueError(f"{where} has dtype {_dtype_name(native)}; {advice}")


def series_numbers(series: nw.Series[Any], where: str, remedies: Remedies) -> Array | None:
    """Return a column of a numeric dtype as an array, NaN for a null; None when the dtype is another.

    Integers and booleans without a null keep their dtype. Others that float64 cannot hold are refused.
    """
    dtype = series.dtype
    values: Array
    if dtype in _LARGE_INTEGERS and (dtype in _BEYOND_NUMPY or series.null_count() > 0):
        present = np.array(series.drop_nulls().to_list(), dtype=object)
        refuse_inexact(present, where, remedies.integers)
    if dtype == nw.Boolean:
        values = series.to_numpy() if series.null_count() == 0 else series.cast(nw.Float64).to_numpy()
    elif dtype.is_numeric():
        values = (series.cast(nw.Float64) if dtype in _BEYOND_NUMPY else series).to_numpy()
    elif dtype in (nw.Unknown, nw.String) and series.null_count() == len(series):
        values = np.full(len(series), np.nan)
    elif dtype == nw.Unknown:  # a sparse column of pandas, or what is no number
        values = series.to_numpy()
        if values.dtype.kind not in "biuf":
            return None
    else:
        return None
    return values.astype(np.float32) if values.dtype == np.float16 else values


def _spoiling(texts: Sequence[str | bytes]) -> str | bytes:
    """Return the first text that no number can be read from, as it may spoil a column of numbers."""
    for text in texts:
        try:
            float(text)
        except ValueError:
            return text
    return texts[0]


def objects_as_numbers(values: Array, where: str, remedies: Remedies) -> FloatArray:
    """Return Python objects as float64. Text is no number, even where it could be read as one."""
    cells = values.tolist()
    for kind in set(map(type, cells)):
        if issubclass(kind, str | bytes):
            text = _spoiling([cell for cell in cells if isinstance(cell, str | bytes)])
            raise ValueError(f"{where} holds no numbers but text such as {str(text)!r}; {remedies.text}")
        if issubclass(kind, _DATES):
            date = next(cell for cell in cells if isinstance(cell, _DATES))
            raise ValueError(f"{where} holds no numbers but {date!r}; {remedies.dates}")
    refuse_inexact(values, where, remedies.integers)
    try:
        numbers = np.array([np.nan if is_missing(cell) else cell for cell in cells], dtype=np.float64)
        if numbers.shape != values.shape:  # of lists of one length NumPy makes a table
            raise TypeError(f"its first cell is {cells[0]!r:.80} of type {type(cells[0]).__name__}.")
        return numbers
    except (TypeError, ValueError, OverflowError) as error:
        kind_of_error = TypeError if isinstance(error, TypeError) else ValueError
        raise kind_of_error(f"{where} holds no numbers: {error}") from error


def is_missing(cell: object) -> bool:
    """Whether a cell is None, NaN, or pandas' NA or NaT."""
    return (
        cell is None
        or type(cell).__name__ in ("NAType", "NaTType")  # known by name: pandas is no dependency
        or (isinstance(cell, numbers.Real) and bool(cell != cell))
    )


# --- columns of the three libraries ------------------------------------------------------------------------


def _native_column(frame: Any, kind: TableKind, j: int) -> Any:
    return frame.column(j) if kind == "pyarrow" else frame.to_series(j)


def _series(native: Any) -> nw.Series[Any]:
    series: nw.Series[Any] = nw.from_native(native, series_only=True)
    return series


def _categorical_dtypes(X: Any, kind: FrameKind) -> npt.NDArray[np.bool_]:
    """Return which columns are of a categorical dtype, without looking at each of very many columns."""
    dtypes = X.schema.types if kind == "pyarrow" else X.dtypes
    words = ("category", "dictionary", "Categorical", "Enum")
    named = [not isinstance(dtype, np.dtype) and str(dtype).startswith(words) for dtype in dtypes]
    return np.array(named, dtype=bool)


def _plain_numbers(column: Any) -> Array | None:
    """Return a column that is an array of numbers inside as that array; None for any other."""
    dtype = getattr(column, "dtype", None)
    if isinstance(dtype, np.dtype):
        plain = dtype.kind in "biuf"
    elif type(column).__module__.startswith("pandas"):
        plain = False
    elif dtype is None:
        plain = str(column.type) in _PLAIN_DTYPES and column.null_count == 0
    else:
        plain = str(dtype).lower() in _PLAIN_DTYPES and column.null_count() == 0
    values: Array | None = column.to_numpy() if plain else None
    return values


def _is_categorical(series: nw.Series[Any]) -> bool:
    return series.dtype in (nw.Categorical, nw.Enum)


def _is_sparse_frame(X: Any) -> bool:
    return all(
        type(dtype).__name__ == "SparseDtype" and dtype.kind in "biuf" and dtype.fill_value == 0
        for dtype in X.dtypes
    )


def _is_record_batch(X: object) -> bool:
    return type(X).__module__ == "pyarrow.lib" and type(X).__name__ == "RecordBatch"


def _is_arrow_array(y: object) -> bool:
    return any(kind.__module__ == "pyarrow.lib" and kind.__name__ == "Array" for kind in type(y).__mro__)


def _dtype_name(native: Any) -> str:
    return str(native.dtype if hasattr(native, "dtype") else native.type)


def _example(series: nw.Series[Any]) -> str:
    cell = next((cell for cell in series.head(1000).to_list() if not is_missing(cell)), None)
    return "" if cell is None else f" such as {cell!r}"
