"""CSV as pandas or polars read it, whichever is installed; written with all digits of every number."""

from __future__ import annotations

import csv
import sys
from collections.abc import Collection
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TextIO

import narwhals.stable.v2 as nw

from polyleaf.cli.failures import Failure
from polyleaf.cli.table_paths import STANDARD
from polyleaf.data.tables import is_missing

_READERS = ("pandas", "polars")


def read_csv(path: str, text: Collection[str] = ()) -> Any:
    """Return a CSV file as a data frame.

    Parameters
    ----------
    path : str
        The file; "-" is standard input.
    text : collection of str, default=()
        Columns, where there are any of these names, that are text whatever they look like.
    """
    reader = next((one for one in _READERS if find_spec(one) is not None), None)
    if reader is None:
        raise Failure(
            f"{path}: reading CSV needs pandas or polars, and neither is installed (pip install pandas)"
        )
    library = import_module(reader)
    given: Any = sys.stdin.buffer if path == STANDARD else path
    if reader == "pandas":
        # Types are found from whole columns, not from a part of the rows at a time.
        return library.read_csv(given, dtype=dict.fromkeys(text, str), low_memory=False)
    if path == STANDARD:
        given = given.read()
    try:
        frame = library.read_csv(given, infer_schema_length=None)
        as_text = {column: library.String for column in frame.columns if column in set(text)}
        if any(frame.schema[column] != library.String for column in as_text):
            frame = library.read_csv(given, infer_schema_length=None, schema_overrides=as_text)
    except library.exceptions.PolarsError as error:
        raise ValueError(str(error)) from error
    return frame


def write_csv(frame: nw.DataFrame[Any], file: TextIO, *, header: bool) -> None:
    """Write the rows of a frame: floats with the digits that give them back, missing cells empty."""
    writer = csv.writer(file, lineterminator="\n")
    if header:
        writer.writerow(frame.columns)
    columns = []
    for series in frame.iter_columns():
        cells = series.to_list()
        gaps = bool(series.is_null().any())
        columns.append(["" if is_missing(cell) else cell for cell in cells] if gaps else cells)
    writer.writerows(zip(*columns, strict=True))
