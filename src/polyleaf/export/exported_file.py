"""Where an export is written: a file that appears as a whole, or a file object that is open already."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO

from polyleaf.files.written_file import checked_target, write_atomically


def checked_destination(path: str | os.PathLike[str] | BinaryIO, what: str) -> Path | BinaryIO:
    """Return where to write, before any work is done; `what` is what errors call that which is written.

    Raises
    ------
    TypeError
        For what is neither a path nor a binary file.
    FileNotFoundError, IsADirectoryError, PermissionError, ValueError
        When nothing can be written there.
    """
    if isinstance(path, str | os.PathLike):
        target = checked_target(path, what)
        # It is written beside the target, and then renamed.
        if not os.access(target.parent, os.W_OK):
            raise PermissionError(f"the folder {str(target.parent)!r} does not let {what} be written to it")
        return target
    write = getattr(path, "write", None)
    if not callable(write) or hasattr(path, "encoding"):
        raise TypeError(
            f"path must be str, os.PathLike or a file that is open for bytes; got {_named(path)}."
        )
    return path


def write_export(destination: Path | BinaryIO, content: bytes) -> None:
    """Write all of it."""
    if isinstance(destination, Path):
        write_atomically(destination, content)
    else:
        destination.write(content)


def _named(path: Any) -> str:
    return f"an object of type {type(path).__name__}"
