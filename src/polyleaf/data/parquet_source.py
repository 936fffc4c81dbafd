"""Parquet files and pyarrow data sets as a source: columns by name, read batch by batch.

pyarrow is no dependency: it is imported when a path or a data set is opened.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.category_values import Categories, category_codes, factored
from polyleaf.data.inputs import table_numbers
from polyleaf.data.source import Source
from polyleaf.data.tables import Array, FrameKind, Table, frame_labels, read_frame
from polyleaf.data.target_frames import NamedColumn
from polyleaf.data.wanted_columns import Wanted

# Read together: cells of numbers (at most 32 MiB of float64), and rows.
_BLOCK_CELLS = 1 << 22
_BLOCK_ROWS = 1 << 17
# The rows that are looked at before all of them are.
_FIRST_ROWS = 1000
_TEXT = ("string", "large_string", "string_view")
_HOW_TO_INSTALL = "needs pyarrow, which is not installed (pip install 'polyleaf[parquet]')"


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
        features = wanted.columns(present, _index_columns(schema), name)
        head = read_frame(schema.empty_table().select(features), "pyarrow", name, min_rows=0)
        self.name, self.labels, self.names = name, head.labels, head.names
        self.categorical = head.categorical
        types = [schema.field(column).type for column in features]
        self.text = np.array([str(one) in _TEXT for one in types])
        self.cell_bytes = max(map(_cell_bytes, types))
        self.shape = (int(dataset.count_rows()), len(features))
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
        chunks = [
            chunk if str(chunk.type).startswith("dictionary") else chunk.dictionary_encode()
            for table in self._tables([name])
            for chunk in table.column(0).chunks
        ]
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
        return self._frame != "polars" and bool(getattr(self._types[j], "ordered", False))

    def check_first_rows(self, categorical: npt.NDArray[np.bool_]) -> None:
        """Raise for columns that hold no numbers, but for these, as far as the first rows show it."""
        columns = np.flatnonzero(~categorical).tolist()
        if columns:
            head = self._projected([str(self.labels[j]) for j in columns]).head(_FIRST_ROWS)
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
        finally:
            pa.system_memory_pool().release_unused()

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


def parquet_dataset(path: str | os.PathLike[str], name: str) -> Any:
    """Return the data set of a Parquet file, a folder of them or a pattern, the files ordered by their paths.

    Of a folder, these are the files called ``*.parquet``, in it and below it; all where none is called that.
    Folders below it, or below the part of a pattern that has no wildcards, that are called like
    "year=2024" are a column, as elsewhere.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    ValueError
        When files have other columns than the first one.
    """
    ds = import_pyarrow_dataset("a Parquet file")
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"{name}: a path must be str; got {text!r:.80}.")
    files, base = _files_of(text)
    if not files:
        raise FileNotFoundError(f"{name}: there is no Parquet file {text!r}.")
    of_folders = {"partitioning": "hive", "partition_base_dir": base} if base else {}
    found = _readable(lambda: ds.dataset(files, format="parquet", **of_folders), text, name)
    fragments = sorted(found.get_fragments(), key=lambda one: str(one.path))
    schema = _readable(lambda: _common_schema(found.schema, fragments, name), text, name)
    return ds.FileSystemDataset(fragments, schema, found.format, found.filesystem)


def _files_of(path: str) -> tuple[list[str], str]:
    """Return the files of a path, and below which folder the names of folders may be values of columns."""
    if os.path.isdir(path):
        files = []
        for folder, below, own in os.walk(path, followlinks=True):
            below[:] = [one for one in below if not one.startswith((".", "_"))]  # of those who still write
            files += [os.path.join(folder, one) for one in own if not one.startswith((".", "_"))]
        return sorted([one for one in files if one.endswith(".parquet")] or files), path
    if os.path.exists(path):
        return [path], ""
    files = [file for file in glob.glob(path, recursive=True) if not os.path.isdir(file)]
    parts = path.split(os.sep)
    first = next((at for at, part in enumerate(parts) if glob.has_magic(part)), 0)
    return sorted(files), os.sep.join(parts[:first]) or (os.sep if path.startswith(os.sep) else os.curdir)


def import_pyarrow_dataset(what: str) -> Any:
    """Return `pyarrow.dataset`, or raise ImportError saying what needs it and how to install it."""
    try:
        return import_module("pyarrow.dataset")
    except ImportError as error:
        raise ImportError(f"{what} {_HOW_TO_INSTALL}.") from error


def _readable(read: Callable[[], Any], text: str, name: str) -> Any:
    """Return what `read` returns; what pyarrow raises names the table."""
    try:
        return read()
    except (OSError, NotImplementedError) as error:
        raise type(error)(f"{name}: {text!r} cannot be read as Parquet: {error}") from error
    except ValueError as error:  # pyarrow.ArrowInvalid
        if str(error).startswith(name):
            raise
        raise ValueError(f"{name}: {text!r} cannot be read as Parquet: {error}") from error


def _common_schema(schema: Any, fragments: Sequence[Any], name: str) -> Any:
    """Return the columns of all files, of types that hold all; files with other columns are refused."""
    pa = import_module("pyarrow")
    own = [fragment.physical_schema for fragment in fragments]
    columns = own[0].names
    for fragment, other in zip(fragments, own, strict=True):
        missing = [column for column in columns if column not in other.names]
        extra = [column for column in other.names if column not in columns]
        if missing or extra:
            said = [f"has no column {missing[0]!r}"] if missing else []
            said += [f"has a column {extra[0]!r} more"] if extra else []
            raise ValueError(
                f"{name}: {fragment.path!r} {' and '.join(said)}, other than {fragments[0].path!r}; all "
                "files must have the same columns."
            )
    of_folders = [field for field in schema if field.name not in columns]
    try:
        joined = pa.unify_schemas([one.remove_metadata() for one in own], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ValueError(f"{name}: its files have columns of types that differ: {error}") from error
    return pa.schema([*joined, *of_folders], metadata=own[0].metadata)


def _index_columns(schema: Any) -> set[str]:
    """Return the columns that are the index of a pandas frame."""
    said = schema.pandas_metadata
    index = said.get("index_columns", []) if isinstance(said, Mapping) else []
    return {column for column in index if isinstance(column, str)}


def _cell_bytes(kind: Any) -> int:
    """Return how many bytes a cell of a column takes as a number; nulls make float64 of integers."""
    return {"halffloat": 4, "float": 4, "float16": 4, "float32": 4}.get(str(kind), 8)
