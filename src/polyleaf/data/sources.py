"""What a source is: paths of Parquet files, pyarrow data sets, polars LazyFrames, iterables of batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse

from polyleaf.data.batch_source import BatchSource
from polyleaf.data.batch_targets import BatchTargets
from polyleaf.data.eval_sets import EvalInput
from polyleaf.data.lazy_source import open_lazy_frame
from polyleaf.data.parquet_files import parquet_dataset
from polyleaf.data.parquet_source import ParquetSource
from polyleaf.data.source import Source, is_dataset, is_path
from polyleaf.data.tables import frame_kind, frame_labels, whole_frame
from polyleaf.data.wanted_columns import Wanted

SourceKind = Literal["path", "dataset", "lazy frame", "batches"]
_RE_ITERABLE = (
    "it can be gone through only once; pass something that can be gone through again: a list, or an object "
    "of a class whose __iter__ returns a new generator each time"
)
WERE_THERE_ANY = " (any more, if it was gone through before)"
# What NumPy or a library of frames makes a table of.
_ARRAY_METHODS = ("__array__", "__array_interface__", "__cuda_array_interface__", "__dataframe__")


def source_kind(X: Any) -> SourceKind | None:
    """Return what kind of source `X` is; None where it is a table in memory, or nothing of use."""
    if type(X) is np.ndarray:
        return None
    if is_path(X):
        return "path"
    if is_dataset(X):
        return "dataset"
    if nw.dependencies.is_polars_lazyframe(X):
        return "lazy frame"
    return "batches" if _is_batches(X) else None


@contextmanager
def opened(
    given: EvalInput,
    categorical_features: Any,
    features: Sequence[str] | None = None,
    *,
    y_needed: bool = True,
) -> Iterator[EvalInput]:
    """Open the source that the X of some rows is; a table in memory is left as it is.

    What the source wrote to disk is removed at the end. y and the weights are taken by `rows_of`.

    Parameters
    ----------
    given : EvalInput
        As the user gave it.
    categorical_features : Any
        The parameter of the estimator.
    features : sequence of str, default=None
        Names of the features of ``fit``, for other rows than those.
    y_needed : bool, default=True
        Whether batches have to bring y, unless it is given.
    """
    source = _open(given, categorical_features, features, y_needed)
    if source is None:
        refuse_names(given)
        yield given
        return
    try:
        y = None if _named_columns(given.y) is not None else given.y
        weight = None if isinstance(given.weight, str) else given.weight
        yield replace(given, X=source, y=y, weight=weight)
    finally:
        source.close()


def refuse_names(given: EvalInput) -> None:
    """Raise ValueError where columns are named, but X is a table in memory."""
    X: Any = given.X
    kind = None if type(X) is np.ndarray else frame_kind(X)
    if not hasattr(X, "shape"):
        return  # which the checks of X may have more to say about
    present = [] if kind is None else frame_labels(whole_frame(X), kind, given.X_name)
    for values, who in ((given.y, given.y_name), (given.weight, given.weight_name)):
        names = _named_columns(values)
        listed = isinstance(names, list) and set(names) <= set(present) and len(names) != X.shape[0]
        if isinstance(names, str) or listed:
            raise ValueError(
                f"{who} is {values!r:.80}: columns are named where {given.X_name} is read from files or "
                "batches; here pass the values themselves."
            )


def rows_of(given: EvalInput) -> EvalInput:
    """Return rows with y and weights, which a source is asked for where they are its own."""
    source = given.X
    if not isinstance(source, Source):
        return given
    y = source.take_target() if given.y is None else given.y
    if y is None:
        raise no_target(given)
    weight = source.take_weight() if given.weight is None else given.weight
    return replace(given, y=y, weight=weight)


def no_target(given: EvalInput) -> ValueError:
    """Return the error that says that there is no y."""
    return ValueError(
        f"{given.y_name} is missing: name a column of {given.X_name}, such as y='price', or several, such as "
        "y=['price', 'cost']."
    )


def frames_to_predict(X: Any, features: Sequence[str] | None, name: str = "X") -> Iterator[Any]:
    """Yield tables with all rows of a source, some at a time.

    Parameters
    ----------
    X : Any
        A source. Batches are tables, or tuples that begin with one; they may come from a generator.
    features : sequence of str or None
        Names of the features of ``fit``, which are looked for by name, whatever else is there.
    name : str, default="X"
        What errors call it.
    """
    if source_kind(X) == "batches":
        yield from _tables_of_batches(X, name)
        return
    source = _open_named(X, Wanted(features=features), name)
    try:
        yield from source.frames()
    finally:
        source.close()


def _open(
    given: EvalInput, categorical_features: Any, features: Sequence[str] | None, y_needed: bool
) -> Source | None:
    kind = source_kind(given.X)
    if kind is None:
        return None
    if kind == "batches":
        batches: Any = given.X
        if iter(batches) is batches:
            raise TypeError(f"{given.X_name} is a {type(batches).__name__}: {_RE_ITERABLE}.")
        return BatchSource(batches, categorical_features, given.X_name, targets_of_batches(given, y_needed))
    return _open_named(given.X, _wanted(given, features), given.X_name)


def targets_of_batches(given: EvalInput, y_needed: bool = True) -> BatchTargets:
    """Return what takes y and weights of batches, but for those that are given already."""
    wanted = _wanted(given, None)
    return BatchTargets(
        given.X_name,
        wanted,
        y_apart=given.y is not None and wanted.target is None,
        weight_apart=given.weight is not None and wanted.weight is None,
        y_needed=y_needed and given.y is None,
    )


def _wanted(given: EvalInput, features: Sequence[str] | None) -> Wanted:
    weight = given.weight if isinstance(given.weight, str) else None
    return Wanted(_named_columns(given.y), weight, features, given.y_name, given.weight_name)


def _open_named(X: Any, wanted: Wanted, name: str) -> ParquetSource:
    kind = source_kind(X)
    if kind == "lazy frame":
        return open_lazy_frame(X, wanted, name)
    return ParquetSource(parquet_dataset(X, name) if kind == "path" else X, wanted, name)


def _named_columns(y: object) -> str | list[str] | frozenset[str] | None:
    """Return y where it is the name of a column, or names of several; otherwise None."""
    if isinstance(y, str | frozenset):
        return y
    if isinstance(y, list | tuple) and len(y) > 0 and all(isinstance(one, str) for one in y):
        return list(y)
    return None


def _is_batches(X: Any) -> bool:
    if isinstance(X, Mapping | set | frozenset | bytes | bytearray | memoryview | range):
        return False
    if scipy.sparse.issparse(X) or any(hasattr(X, method) for method in _ARRAY_METHODS):
        return False
    if not hasattr(X, "__iter__") or frame_kind(X) is not None:
        return False
    if not (hasattr(X, "__len__") and hasattr(X, "__getitem__")):
        return True
    if len(X) == 0:
        return False
    first = X[0]  # of a list: rows of numbers, or tuples of tables
    table = first[0] if isinstance(first, tuple | list) and len(first) > 0 else first
    # What could be meant for a batch, and is told so.
    odd = isinstance(table, Mapping) or is_dataset(table) or nw.dependencies.is_polars_lazyframe(table)
    return odd or _is_table(table)


def _is_table(X: Any) -> bool:
    return len(getattr(X, "shape", ())) == 2


def _tables_of_batches(X: Iterable[Any], name: str) -> Iterator[Any]:
    found = False
    for number, batch in enumerate(X):
        found = True
        table = batch[0] if isinstance(batch, tuple | list) and len(batch) > 0 else batch
        yield table_of_batch(table, f"batch {number}", name)
    if not found:
        raise ValueError(f"{name}: there are no batches{WERE_THERE_ANY}.")


def table_of_batch(table: Any, place: str, name: str) -> Any:
    """Return X of a batch, or raise TypeError where it is no table."""
    if not _is_table(table):
        raise TypeError(
            f"{name}: {place} is {type(table).__name__}; batches are tables, or tuples that begin with one."
        )
    return table
