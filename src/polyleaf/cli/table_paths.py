"""The files of a command: which format a table has, and whether two are the same file."""

from __future__ import annotations

import os
from typing import Literal

from polyleaf.cli.failures import UsageError

Format = Literal["csv", "parquet"]
FORMATS: tuple[Format, ...] = ("csv", "parquet")
STANDARD = "-"  # standard input or output
_ENDINGS: dict[str, Format] = {".csv": "csv", ".csv.gz": "csv", ".parquet": "parquet", ".pq": "parquet"}


def input_format(path: str, said: Format | None) -> Format:
    """Return the format of a table that is read; a folder is one of Parquet files."""
    return "parquet" if os.path.isdir(path) else _by_name(path, said)


def output_format(path: str, said: Format | None) -> Format:
    """Return the format of a table that is written."""
    if path.lower().endswith(".gz"):
        raise UsageError(
            f"--out {path}: compressed CSV is read, not written; write Parquet, or to - and gzip"
        )
    return _by_name(path, said)


def _by_name(path: str, said: Format | None) -> Format:
    for ending, found in _ENDINGS.items():
        if path.lower().endswith(ending):
            return found
    if said is None and path != STANDARD:
        raise UsageError(f"{path}: its name ends in neither .csv nor .parquet; say which with --format")
    return said or "csv"


def same_file(path: str, other: str) -> bool:
    """Whether two paths lead to one file that exists."""
    return os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)
