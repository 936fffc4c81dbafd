"""A pyarrow data set, of Parquet files above all, as a source: columns by name, read batch by batch.

pyarrow is no dependency: it is imported when a path or a data set is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.category_values import Categories, category_codes, factored
from polyleaf.data.inputs import table_numbers
from polyleaf.data.parquet_files import index_columns
from polyleaf.data.source import Source
from polyleaf.data.tables import Array, FrameKind, Table, frame_labels, read_frame
from polyleaf.data.target_frames import NamedColumn
from polyleaf.data.wanted_columns import Wanted
from polyleaf.params.wording import some_of

# Read together: cells of numbers (at most 32 MiB of float64), and rows.
_BLOCK_CELLS = 1 << 22
_BLOCK_ROWS = 1 << 17
# The rows that are looked at before all of them are.
_FIRST_ROWS = 1000
_TEXT = ("string", "large_string", "string_view")


class ParquetSource(Source):
    """The rows of a `pyarrow.dataset.Dataset`, in the order in which it has them.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
        Where the rows are.
    wanted : Wanted
        Which of its columns are used, and what for.
    name : str
        What errors call it.
    frame : {"pyarrow", "polars"}, default="pyarrow"
        Of which kind y and the parts for ``predict`` are.
    on_close : callable, default=None
        Removes what was written for it.
    """

    def __init__(
        self,
        dataset: Any,
        wanted: Wanted,
        name: str,
        frame: FrameKind = "pyarrow",
        on_close: Callable[[], None] | None = None,
    ) -> None:
        schema = dataset.schema
        present = frame_labels(schema.empty_table(), "pyarrow", name)
        features = wanted.columns(present, index_columns(schema), name)
        head = read_frame(schema.empty_table().select(features), "pyarrow", name, min_rows=0)
        self.name, self.labels, self.names = name, head.labels, head.names
        self.categorical = head.categorical
        types = [schema.field(column).type for column in features]
        self.text = np.array([str(one) in _TEXT for one in types])
        self.cell_bytes = max(map(_cell_bytes, types))
        try:
            self.shape = (int(dataset.count_rows()), len(features))
        except import_module("pyarrow").ArrowException as error:
            raise ValueError(f"{name}: its rows cannot be read: {error}") from error
        self._dataset, self._wanted, self._frame = dataset, wanted, frame
        self._types = types
        self._on_close = on_close

    def blocks(self, columns: Sequence[int], categories: Categories, n_threads: int = 1) -> Iterator[Array]:
        """Yield all rows of some columns as numbers, some rows at a time."""
        own = {at: categories[j] for at, j in enumerate(columns) if j in categories}
        first_row = 0
        for table in self._tables([str(self.labels[j]) for j in columns]):
            part = self._part(table, columns)
            numbers = table_numbers(part, category_codes(part, own), n_threads, first_row)
            assert isinstance(numbers, np.ndarray)
            yield numbers
            first_row += len(numbers)
        if first_row != self.shape[0]:
            raise ValueError(
                f"{self.name} had {self.shape[0]} rows, and has {first_row} now: it changed while being read."
            )

    def frames(self) -> Iterator[Any]:
        """Yield the features as frames, some rows at a time; one without rows where there are none."""
        names = [str(label) for label in self.labels]
        found = False
        for table in self._tables(names):
            found = True
            yield self._native(table)
        if not found:
            yield self._native(self._dataset.schema.empty_table().select(names))

    def column(self, j: int) -> Any:
        """Return a column as a whole: its distinct values, and for each row which of them."""
        return self._encoded(str(self.labels[j]))

    def _encoded(self, name: str) -> Any:
        kind = self._dataset.schema.field(name).type
        is_encoded = str(kind).startswith("dictionary")
        try:  # block by block, so that text is never there as a whole
            chunks = [
                chunk if is_encoded else chunk.dictionary_encode()
                for table in self._tables([name])
                for chunk in table.column(0).chunks
            ]
        except NotImplementedError as error:
            raise ValueError(
                f"{self.name}: column {name!r} has dtype {kind}; categories are text or numbers."
            ) from error
        return import_module("pyarrow").chunked_array(chunks)

    def _labels_of(self, name: str) -> Array:
        """Return a column of text, in which equal cells are one object."""
        levels, positions = factored(self._encoded(name), name)
        shared: dict[Any, Any] = {}
        objects = np.array([*(shared.setdefault(one, one) for one in levels), None], dtype=object)
        return objects[positions]

    def is_ordered(self, j: int) -> bool:
        """Whether the type of a column says that its categories have an order."""
        # polars writes that of its Enum, which has none.
        said = self._dataset.schema.field(str(self.labels[j])).metadata or {}
        of_polars = self._frame == "polars" or any(key.startswith(b"_PL_ENUM") for key in said)
        return not of_polars and bool(getattr(self._types[j], "ordered", False))

    def check_first_rows(self, categorical: npt.NDArray[np.bool_]) -> None:
        """Raise for columns that hold no numbers, but for these, as far as the first rows show it."""
        columns = np.flatnonzero(~categorical).tolist()
        if columns:
            names = [str(self.labels[j]) for j in columns]
            try:
                head = self._projected(names).head(_FIRST_ROWS)
            except import_module("pyarrow").ArrowException as error:
                raise self._unreadable(names, error) from error
            table_numbers(self._part(head, columns))

    def take_target(self) -> object:
        """Return the columns of y as a frame, or its one column."""
        target = self._wanted.target
        if target is None:
            return None
        if isinstance(target, str):
            kind = str(self._dataset.schema.field(target).type)
            text = kind in _TEXT or kind.startswith("dictionary")
            column = self._labels_of(target) if text else self._native(self._whole([target]).column(0))
            return NamedColumn(column, target, self._frame)
        return self._native(self._whole(self._wanted.targets(self._dataset.schema.names)))

    def take_weight(self) -> object:
        """Return the column of the weights."""
        weight = self._wanted.weight
        return None if weight is None else self._whole([weight]).column(0)

    def close(self) -> None:
        """Remove what was written to disk for the source."""
        if self._on_close is not None:
            self._on_close()

    def _part(self, table: Any, columns: Sequence[int]) -> Table:
        return Table(
            self.name,
            "pyarrow",
            table,
            [self.labels[j] for j in columns],
            None,
            self.categorical[np.asarray(columns, dtype=np.intp)],
        )

    def _native(self, values: Any) -> Any:
        return values if self._frame == "pyarrow" else import_module("polars").from_arrow(values)

    def _whole(self, names: Sequence[str]) -> Any:
        table = import_module("pyarrow").Table.from_batches(
            [batch for part in self._tables(names) for batch in part.to_batches()],
            schema=self._dataset.schema.empty_table().select(list(names)).schema.remove_metadata(),
        )
        return table.combine_chunks()

    def _tables(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield all rows of some columns, some rows at a time."""
        pa = import_module("pyarrow")
        schema = self._dataset.schema.empty_table().select(list(names)).schema.remove_metadata()
        try:
            for batch in self._projected(names).to_batches():
                if batch.num_rows > 0:
                    # Without the metadata, which of files that follow each other need not agree.
                    yield pa.Table.from_batches([batch.replace_schema_metadata(None)]).cast(schema)
        except pa.ArrowException as error:
            raise self._unreadable(names, error) from error
        finally:
            pa.system_memory_pool().release_unused()

    def _unreadable(self, names: Sequence[str], error: Exception) -> ValueError:
        """Return what says that columns cannot be read, such as integers that floats would not hold."""
        which = "column" if len(names) == 1 else "one of the columns"
        return ValueError(f"{self.name}: {which} {some_of(names)} cannot be read: {error}")

    def _projected(self, names: Sequence[str]) -> Any:
        """Return what scans some columns, little of them at a time."""
        pa, ds = import_module("pyarrow"), import_module("pyarrow.dataset")
        options: dict[str, Any] = {}
        if isinstance(getattr(self._dataset, "format", None), ds.ParquetFileFormat):
            options["fragment_scan_options"] = ds.ParquetFragmentScanOptions(
                use_buffered_stream=True, pre_buffer=False
            )
        return self._dataset.scanner(
            columns={name: ds.field(name) for name in names},  # a dot in a name is a dot
            batch_size=max(1, min(_BLOCK_ROWS, _BLOCK_CELLS // len(names))),
            batch_readahead=1,
            fragment_readahead=1,
            memory_pool=pa.system_memory_pool(),  # which gives back what is freed
            **options,
        )


def _cell_bytes(kind: Any) -> int:
    """Return how many bytes a cell of a column takes as a number; nulls make float64 of integers."""
    return {"halffloat": 4, "float": 4, "float16": 4, "float32": 4}.get(str(kind), 8)
