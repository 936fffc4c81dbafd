"""The files of a path: which they are, the columns that they have in common, and their types.

pyarrow is no dependency: it is imported when a path is opened.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

_HOW_TO_INSTALL = "needs pyarrow, which is not installed (pip install 'polyleaf[parquet]')"


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
    files, base = _files_of(os.path.expanduser(text))
    if not files:
        elsewhere = "; of what is not on this machine, pass a pyarrow.dataset" if "://" in text else ""
        raise FileNotFoundError(f"{name}: there is no Parquet file {text!r}{elsewhere}.")
    if base:
        _refuse_columns_twice(files, base, name)
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


def _refuse_columns_twice(files: Sequence[str], base: str, name: str) -> None:
    """Raise ValueError for a column that is in a file, and in the names of its folders, too."""
    folders = os.path.relpath(os.path.dirname(files[0]), base).split(os.sep)
    keys = {folder.partition("=")[0]: folder for folder in folders if "=" in folder}
    if not keys:
        return
    own = _readable(lambda: import_module("pyarrow.parquet").read_schema(files[0]), files[0], name)
    for column, folder in keys.items():
        if column in own.names:
            raise ValueError(
                f"{name}: column {column!r} is in {files[0]!r}, and in the name of a folder, {folder!r}, "
                "too; rename one of them, or pass a pyarrow.dataset."
            )


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
    # Of frames of pandas, some files may have an index that others do not have.
    index = set[str]().union(*map(index_columns, own))
    index = {column for column in index if any(column not in one.names for one in own)}
    own = [_without(one, index) for one in own]
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
    of_folders = [field for field in schema if field.name not in columns and field.name not in index]
    plain = [one.remove_metadata() for one in _decoded(own)]
    try:
        joined = pa.unify_schemas(plain, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ValueError(f"{name}: its files have columns of types that differ: {error}") from error
    return pa.schema([*joined, *of_folders], metadata=own[0].metadata)


def _without(schema: Any, columns: set[str]) -> Any:
    """Return a schema without some columns."""
    pa = import_module("pyarrow")
    return pa.schema([field for field in schema if field.name not in columns], metadata=schema.metadata)


def _decoded(schemas: Sequence[Any]) -> list[Any]:
    """Return schemas in which a column is a dictionary in all of them, or in none."""
    pa = import_module("pyarrow")
    kinds: dict[str, set[bool]] = {}
    for schema in schemas:
        for field in schema:
            kinds.setdefault(field.name, set()).add(pa.types.is_dictionary(field.type))
    mixed = {name for name, found in kinds.items() if len(found) > 1}

    def plain(field: Any) -> Any:
        is_mixed = field.name in mixed and pa.types.is_dictionary(field.type)
        return field.with_type(field.type.value_type) if is_mixed else field

    return [pa.schema(map(plain, schema)) for schema in schemas] if mixed else list(schemas)


def index_columns(schema: Any) -> set[str]:
    """Return the columns that are the index of a pandas frame."""
    said = schema.pandas_metadata
    index = said.get("index_columns", []) if isinstance(said, Mapping) else []
    return {column for column in index if isinstance(column, str)}
