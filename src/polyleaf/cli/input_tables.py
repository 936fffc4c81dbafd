"""The table of a command: a frame in memory, or Parquet files that are read a part at a time."""

from __future__ import annotations

import io
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt

from polyleaf.cli.csv_files import read_csv
from polyleaf.cli.failures import Failure, naming
from polyleaf.cli.table_paths import STANDARD, Format, input_format
from polyleaf.data.parquet_files import import_pyarrow_dataset, index_columns, parquet_dataset
from polyleaf.data.sources import frames_to_predict
from polyleaf.data.tables import frame_kind, frame_labels
from polyleaf.params.wording import some_of

ColumnKind = Literal["number", "bool", "text", "other"]


@dataclass(frozen=True)
class Rows:
    """What ``fit`` takes: features, targets and weights, as values or as names of columns."""

    X: Any
    y: Any
    weight: Any


class InputTable(ABC):
    """A table with names.

    Attributes
    ----------
    name : str
        What errors call it: its path, or "standard input".
    columns : list of str
        Its columns, without those that pandas wrote as an index.
    """

    name: str
    columns: list[str]

    @abstractmethod
    def n_rows(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def rows(self, features: Sequence[str], targets: str | Sequence[str], weight: str | None) -> Rows:
        """Return what ``fit`` takes; one target by name is a column, a sequence a table of targets."""

    @abstractmethod
    def frames(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield these columns as frames, some rows at a time."""

    @abstractmethod
    def in_memory(self, columns: Sequence[str]) -> FrameTable:
        """Return the table with these columns alone, as a frame."""

    @abstractmethod
    def _head(self) -> nw.DataFrame[Any]:
        """Return a frame with the types of the columns."""

    def kind_of(self, column: str) -> ColumnKind:
        """Return what a column holds, by its type."""
        dtype = self._head()[column].dtype
        if dtype.is_numeric():
            return "number"
        if dtype == nw.Boolean:
            return "bool"
        return "text" if dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object) else "other"

    def n_values(self, column: str) -> int:
        """Return how many distinct values a column has, missing ones apart."""
        parts = (nw.from_native(part, eager_only=True)[column] for part in self.frames([column]))
        return len({value for part in parts for value in part.drop_nulls().unique().to_list()})

    def require(self, columns: Sequence[str], who: str) -> None:
        """Raise naming the columns that are not there, and who asks for them."""
        missing = [column for column in columns if column not in self.columns]
        if missing:
            word = "columns" if len(missing) > 1 else "column"
            raise Failure(
                f"{self.name}: no {word} {some_of(missing)}, {who}; it has {some_of(self.columns) or 'none'}"
            )


class FrameTable(InputTable):
    """A data frame of pandas, polars or pyarrow.

    Parameters
    ----------
    name : str
        What errors call it.
    frame : data frame
        Its rows.
    """

    def __init__(self, name: str, frame: Any) -> None:
        kind = frame_kind(frame)
        assert kind is not None
        self.name = name
        self.columns = frame_labels(frame, kind, name)
        self._frame: nw.DataFrame[Any] = nw.from_native(frame, eager_only=True)

    def n_rows(self) -> int:
        """Return the number of rows."""
        return len(self._frame)

    def rows(self, features: Sequence[str], targets: str | Sequence[str], weight: str | None) -> Rows:
        """Return frames and columns."""
        y = self._frame[targets] if isinstance(targets, str) else self._frame.select(list(targets))
        return Rows(
            self._frame.select(list(features)).to_native(),
            y.to_native(),
            None if weight is None else self._frame[weight].to_native(),
        )

    def frames(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield one frame."""
        yield self._frame.select(list(columns)).to_native()

    def in_memory(self, columns: Sequence[str]) -> FrameTable:
        """Return the table without other columns."""
        return FrameTable(self.name, self._frame.select(list(columns)).to_native())

    def taken(self, rows: npt.NDArray[np.intp]) -> FrameTable:
        """Return some of the rows, in this order."""
        return FrameTable(self.name, self._frame[rows, :].to_native())

    def _head(self) -> nw.DataFrame[Any]:
        return self._frame


class ParquetTable(InputTable):
    """Parquet files: one, a folder of them, or a pattern.

    Parameters
    ----------
    path : str
        Where they are.
    """

    def __init__(self, path: str) -> None:
        self.name = path
        self._dataset = parquet_dataset(path, path)
        index = index_columns(self._dataset.schema)
        self.columns = [column for column in self._dataset.schema.names if column not in index]

    def n_rows(self) -> int:
        """Return the number of rows, which the files say without being read."""
        return int(self._dataset.count_rows())

    def rows(self, features: Sequence[str], targets: str | Sequence[str], weight: str | None) -> Rows:
        """Return the files, and names of columns."""
        of_y = [targets] if isinstance(targets, str) else list(targets)
        used = {*features, *of_y, *([] if weight is None else [weight])}
        schema = self._dataset.schema
        pa = import_module("pyarrow")
        kept = pa.schema([field for field in schema if field.name in used], metadata=schema.metadata)
        return Rows(self._dataset.replace_schema(kept), targets if isinstance(targets, str) else of_y, weight)

    def frames(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield tables of pyarrow with some of the rows each."""
        return frames_to_predict(self._dataset, list(columns), self.name)

    def in_memory(self, columns: Sequence[str]) -> FrameTable:
        """Return all rows of some columns."""
        parts = list(self.frames(columns))
        return FrameTable(self.name, import_module("pyarrow").concat_tables(parts).combine_chunks())

    def _head(self) -> nw.DataFrame[Any]:
        head: nw.DataFrame[Any] = nw.from_native(self._dataset.schema.empty_table(), eager_only=True)
        return head


def open_table(path: str, said: Format | None, text: Collection[str] = ()) -> InputTable:
    """Return the table of a path, or of standard input.

    Parameters
    ----------
    path : str
        A CSV file, a Parquet file, a folder of these or a pattern; "-" for standard input.
    said : {"csv", "parquet"} or None
        The format where the name does not say it.
    text : collection of str, default=()
        Columns of a CSV file that are text whatever they look like.
    """
    found = input_format(path, said)
    shown = "standard input" if path == STANDARD else path
    with naming(shown):
        if found == "parquet" and path != STANDARD:
            return ParquetTable(path)
        if found == "csv" and path != STANDARD and not os.path.exists(path):
            raise FileNotFoundError("there is no such file")
        return FrameTable(
            shown, _parquet_from_standard_input() if found == "parquet" else read_csv(path, text)
        )


def _parquet_from_standard_input() -> Any:
    import_pyarrow_dataset("Parquet")
    # Its end is read first, so that all of it has to be there.
    return import_module("pyarrow.parquet").read_table(io.BytesIO(sys.stdin.buffer.read()))
