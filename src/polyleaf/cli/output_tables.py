"""A table that is written some rows at a time: CSV or Parquet, to a file or to standard output."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any, BinaryIO, TextIO

import narwhals.stable.v2 as nw

from polyleaf.cli.csv_files import write_csv
from polyleaf.cli.table_paths import STANDARD, Format
from polyleaf.data.parquet_files import import_pyarrow_dataset
from polyleaf.files.written_file import checked_target, file_in_place_of

Write = Callable[[nw.DataFrame[Any]], None]


@contextmanager
def written_table(path: str, form: Format, what: str = "the predictions") -> Iterator[Write]:
    """Return what writes frames one below the other.

    A file appears when it is complete, and replaces one of the same name.

    Parameters
    ----------
    path : str
        The file; "-" is standard output.
    form : {"csv", "parquet"}
        Its format.
    what : str, default="the predictions"
        What errors call that which is written.
    """
    if form == "parquet":
        import_pyarrow_dataset("writing Parquet")
    with ExitStack() as stack:
        if path != STANDARD:
            binary: Any = stack.enter_context(file_in_place_of(checked_target(path, what)))
        else:
            binary = io.BytesIO()
        if form == "csv":
            yield from _csv(sys.stdout if path == STANDARD else _text(binary, stack))
            return
        yield from _parquet(binary)
        if path == STANDARD:
            sys.stdout.buffer.write(binary.getvalue())
            sys.stdout.flush()


def _text(binary: BinaryIO, stack: ExitStack) -> TextIO:
    text = io.TextIOWrapper(binary, encoding="utf-8", newline="")
    stack.callback(text.detach)  # whoever opened the file closes it
    return text


def _csv(file: TextIO) -> Iterator[Write]:
    begun = False

    def write(frame: nw.DataFrame[Any]) -> None:
        nonlocal begun
        write_csv(frame, file, header=not begun)
        begun = True

    yield write
    file.flush()


def _parquet(file: BinaryIO) -> Iterator[Write]:
    parquet = import_module("pyarrow.parquet")
    writer: Any = None

    def write(frame: nw.DataFrame[Any]) -> None:
        nonlocal writer
        table = frame.to_arrow().replace_schema_metadata(None)
        if writer is None:
            writer = parquet.ParquetWriter(file, table.schema)
        writer.write_table(table.cast(writer.schema))

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()
