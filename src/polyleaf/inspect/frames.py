"""Columns with gaps as a data frame of pandas or polars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from polyleaf.params.rules import Choice

LIBRARIES = ("pandas", "polars")

# Text, with None for a gap; lists, with None for a gap; integers, masked where there is a gap; floats, NaN.
Column: TypeAlias = "TextColumn | ListColumn | np.ma.MaskedArray[Any, Any] | npt.NDArray[Any]"


class TextColumn(list[str | None]):
    """A column of text; None is a gap."""


class ListColumn(list[Sequence[Any] | None]):
    """A column of lists, of text or of floats; None is a gap."""


def frame_library(library: object) -> Any:
    """Return the module that makes frames: the one asked for, or the first of pandas and polars there is.

    Raises
    ------
    ImportError
        When it is not installed, or neither is.
    """
    Choice(LIBRARIES, or_none=True).check("library", library)
    asked = LIBRARIES if library is None else (str(library),)
    for name in asked:
        try:
            return import_module(name)
        except ImportError as error:
            missing = error
    raise ImportError(
        f"a data frame needs {' or '.join(asked)}, which is not installed: pip install {asked[0]}."
    ) from missing


def make_frame(columns: Mapping[str, Column], library: Any) -> Any:
    """Return a frame of the library, with null (of pandas' floats and lists: NaN and None) in gaps."""
    make = _pandas_column if library.__name__ == "pandas" else _polars_column
    return library.DataFrame({name: make(library, column) for name, column in columns.items()})


def _pandas_column(pandas: Any, column: Column) -> Any:
    if isinstance(column, TextColumn):
        return pandas.array(list(column), dtype="string")
    if isinstance(column, ListColumn):
        return pandas.Series(list(column), dtype=object)
    if isinstance(column, np.ma.MaskedArray):
        return pandas.arrays.IntegerArray(column.data.astype(np.int64), np.ma.getmaskarray(column))
    return column


def _polars_column(polars: Any, column: Column) -> Any:
    if isinstance(column, TextColumn):
        return polars.Series(list(column), dtype=polars.String)
    if isinstance(column, ListColumn):
        held = next((value for one in column if one for value in one), "")
        inner = polars.String if isinstance(held, str) else polars.Float64
        return polars.Series(list(column), dtype=polars.List(inner))
    if isinstance(column, np.ma.MaskedArray):
        return polars.Series(column.tolist(), dtype=polars.Int64)
    return polars.Series(column, nan_to_null=True) if column.dtype.kind == "f" else polars.Series(column)
