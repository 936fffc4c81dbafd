"""The files of a command that reads a table and a model: what it may write to."""

from __future__ import annotations

from collections.abc import Sequence

from polyleaf.cli.failures import UsageError, naming
from polyleaf.cli.table_paths import STANDARD, same_file
from polyleaf.files.written_file import checked_target


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
