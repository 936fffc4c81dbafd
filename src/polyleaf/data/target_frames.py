"""y as a data frame or a named column, and predictions as a data frame."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from polyleaf.data.device_arrays import on_host
from polyleaf.data.remedies import IN_Y
from polyleaf.data.tables import (
    Array,
    FrameKind,
    Table,
    frame_kind,
    frame_labels,
    frame_numbers,
    series_kind,
    series_numbers,
    whole_frame,
)
from polyleaf.params.combinations import refused
from polyleaf.params.situation import Situation

FrameMaker = Callable[[Array, Sequence[str]], Any]


@dataclass(frozen=True)
class TargetInput:
    """y as an array-like, with what a frame says about it.

    Attributes
    ----------
    values : object
        What the user gave when it was no frame; otherwise an array with NaN for a null.
    names : tuple of str or None
        Names of the columns.
    frame : {"pandas", "polars", "pyarrow"} or None
        Which library's frame or column y was.
    labels : tuple or None
        What a frame calls its columns: `names`, or what are not all str.
    """

    values: object
    names: tuple[str, ...] | None = None
    frame: FrameKind | None = None
    labels: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class NamedColumn:
    """One column of a frame, as an array or as the library has it, with what it does not know itself."""

    column: Any
    name: str
    frame: FrameKind


def read_target_input(y: Any, name: str) -> TargetInput:
    """Take a frame or column apart; anything else is returned as it is, for the checks to come.

    Targets in the memory of a GPU are copied to that of the host, where they are coded.
    """
    y = on_host(y)
    if isinstance(y, np.ndarray):
        return TargetInput(y)
    if isinstance(y, TargetInput):  # of a binned table
        return y
    if isinstance(y, NamedColumn):
        taken = read_target_input(y.column, name)
        return replace(taken, names=(y.name,), frame=y.frame, labels=(y.name,))
    kind = series_kind(y)
    if kind is not None:
        label = getattr(y, "name", None)
        is_name = isinstance(label, str) and label != ""
        own = (str(label),) if is_name else None
        return TargetInput(column_values(y, kind, name), own, kind, own)
    kind = frame_kind(y)
    if kind is None:
        return TargetInput(y)
    y = whole_frame(y)
    labels = frame_labels(y, kind, name)
    if not labels:
        raise ValueError(f"{name} has no columns (shape {tuple(y.shape)}); it must have at least one.")
    words = tuple(label for label in labels if isinstance(label, str))
    names = words if len(words) == len(labels) else None
    table = Table(name, kind, y, labels, names, np.zeros(len(labels), dtype=bool))
    if len(labels) > 1:
        values = frame_numbers(table, remedies=IN_Y)
    else:
        values = column_values(table.column(0), kind, f"{name}: column {labels[0]!r}")[:, np.newaxis]
    return TargetInput(values, names, kind, tuple(labels))


def column_values(native: Any, kind: FrameKind, where: str) -> Array:
    """Return one column: numbers as numbers, anything else (labels, above all) as the library gives it."""
    if kind == "pandas":
        numbers = series_numbers(nw.from_native(native, series_only=True), where, IN_Y)
        return np.asarray(native) if numbers is None else numbers
    series = column_series(native, kind)
    numbers = series_numbers(series, where, IN_Y)
    if numbers is not None:
        return numbers
    if series.dtype.is_nested():
        raise ValueError(f"{where} has dtype {series.dtype}; it must hold one number or label in each row.")
    if series.dtype in (nw.Categorical, nw.Enum, nw.String, nw.Object):
        labels = series.to_list()
        array = np.empty(len(labels), dtype=object)
        array[:] = labels
        return array
    return np.asarray(series.to_numpy())


def column_series(native: Any, kind: FrameKind) -> nw.Series[Any]:
    """Return one column in the form that all libraries share."""
    if not hasattr(native, "chunks") and kind == "pyarrow":
        native = importlib.import_module("pyarrow").chunked_array([native])
    series: nw.Series[Any] = nw.from_native(native, series_only=True)
    return series


# --- predictions as frames ---------------------------------------------------------------------------------


def frame_maker(X: Any, otherwise: FrameKind | None) -> FrameMaker:
    """Return a function that makes a frame of predictions for the rows of `X` and names for its columns.

    The frame is of the kind of `X`, with its index (pandas); for other tables of the kind `otherwise`.

    Raises
    ------
    ValueError
        When neither is a frame.
    ImportError
        When the library of `otherwise` is not installed.
    """
    kind = frame_kind(X) or otherwise
    if kind is None:
        raise refused(Situation(asked=frozenset({"as_frame"}), frame_known=False))
    library: Any = importlib.import_module(kind)

    def make(prediction: Array, names: Sequence[str]) -> Any:
        prediction = on_host(prediction)
        columns = prediction[:, np.newaxis] if prediction.ndim == 1 else prediction
        if kind == "pandas":
            index = X.index if frame_kind(X) == "pandas" else None
            return library.DataFrame(columns, index=index, columns=list(names))
        text = columns.dtype.kind in "UO"
        by_name = {
            name: column.tolist() if text else np.ascontiguousarray(column)
            for name, column in zip(names, columns.T, strict=True)
        }
        return library.DataFrame(by_name) if kind == "polars" else library.table(by_name)

    return make
