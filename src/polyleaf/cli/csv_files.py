"""CSV as pandas or polars read it, whichever is installed; written with all digits of every number."""

from __future__ import annotations

import csv
import io
import sys
import warnings
from collections import Counter
from collections.abc import Collection, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TextIO

import narwhals.stable.v2 as nw

from polyleaf.cli.failures import Failure
from polyleaf.cli.table_paths import STANDARD
from polyleaf.data.tables import is_missing
from polyleaf.params.wording import some_of

_READERS = ("pandas", "polars")


def read_csv(path: str, text: Collection[str] = ()) -> Any:
    """Return a CSV file as a data frame.

    Parameters
    ----------
    path : str
        The file; "-" is standard input.
    text : collection of str, default=()
        Columns, where there are any of these names, that are text whatever they look like.

    Raises
    ------
    ValueError
        When a name is there twice, which readers would make another name of, or rows are longer than the
        header, which shifts them.
    """
    reader = next((one for one in _READERS if find_spec(one) is not None), None)
    if reader is None:
        raise Failure(
            f"{path}: reading CSV needs pandas or polars, and neither is installed (pip install pandas)"
        )
    library = import_module(reader)
    # Read here, as its first line may be asked for again.
    given: Any = sys.stdin.buffer.read() if path == STANDARD else path
    if reader == "pandas":
        return _by_pandas(library, given, text)
    try:
        frame = library.read_csv(given, infer_schema_length=None)
        as_text = {column: library.String for column in frame.columns if column in set(text)}
        if any(frame.schema[column] != library.String for column in as_text):
            frame = library.read_csv(given, infer_schema_length=None, schema_overrides=as_text)
        if any("_duplicated_" in column for column in frame.columns):
            header = library.read_csv(given, has_header=False, n_rows=1, infer_schema=False)
            _refuse_twice(header.row(0))
    except library.exceptions.PolarsError as error:
        raise ValueError(str(error)) from error
    return frame


def _by_pandas(library: Any, given: str | bytes, text: Collection[str]) -> Any:
    def source() -> Any:
        return io.BytesIO(given) if isinstance(given, bytes) else given

    with warnings.catch_warnings():
        warnings.simplefilter("error", library.errors.ParserWarning)
        try:
            # The first cells of longer rows are no index. Types are found from whole columns, not from a part
            # of the rows at a time.
            types = dict.fromkeys(text, str)
            frame = library.read_csv(source(), dtype=types, low_memory=False, index_col=False)
        except library.errors.ParserWarning:
            raise ValueError("its rows have more cells than its header has names") from None
    if any(column.rpartition(".")[0] in frame.columns for column in frame.columns):
        _refuse_twice(library.read_csv(source(), header=None, nrows=1, dtype=str).iloc[0].tolist())
    return frame


def _refuse_twice(header: Sequence[Any]) -> None:
    twice = [name for name, count in Counter(header).items() if count > 1 and not is_missing(name)]
    if twice:
        word = "columns" if len(twice) > 1 else "column"
        raise ValueError(f"its header has the {word} {some_of(twice)} more than once")


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
