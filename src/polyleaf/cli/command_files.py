"""The files of a command that reads a table and a model: its arguments, and what it may write to."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from polyleaf.cli.failures import UsageError, naming
from polyleaf.cli.table_paths import STANDARD, same_file
from polyleaf.files.written_file import checked_target


def add_table_and_model(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say what is read."""
    parser.add_argument(
        "table",
        metavar="TABLE",
        help="a CSV or Parquet file, a folder of Parquet files, a pattern in quotes, or - for standard input",
    )
    parser.add_argument("--model", metavar="FILE", required=True, help="the model, as train saved it")


def add_written_table(parser: argparse.ArgumentParser) -> None:
    """Add the argument that says where a table is written to."""
    parser.add_argument(
        "--out",
        metavar="FILE",
        default=STANDARD,
        help="a .csv or .parquet file, which is replaced if it exists (default: -, standard output)",
    )


def check_output(out: str, what: str, inputs: Sequence[str]) -> None:
    """Raise where an output cannot be written, or is one of the inputs."""
    if out != STANDARD:
        with naming(out):
            checked_target(out, what)
    for path in inputs:
        if same_file(path, out):
            raise UsageError(f"--out {out} is {path}, which it would replace")


def column_names(text: str | None) -> list[str]:
    """Return names that stand between commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]
