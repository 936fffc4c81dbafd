"""Where an export is written: a file that appears as a whole, or a file object that is open already."""

from __future__ import annotations

import os
from pathlib import Path

from polyleaf.files.binary_objects import BinaryWriter, WrittenTo, check_binary, is_writer, write_whole
from polyleaf.files.written_file import checked_target, write_atomically


def checked_destination(path: WrittenTo, what: str) -> Path | BinaryWriter:
    """Return where to write, before any work is done; `what` is what errors call that which is written.

    Raises
    ------
    TypeError
        For what is neither a path nor a binary file.
    FileNotFoundError, IsADirectoryError, PermissionError, ValueError
        When nothing can be written there.
    """
    if is_writer(path):
        check_binary(path, "writing")
        return path
    target = checked_target(path, what, "str, os.PathLike or a binary file object")
    # It is written beside the target, and then renamed.
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(f"the folder {str(target.parent)!r} does not let {what} be written to it")
    return target


def write_export(destination: Path | BinaryWriter, content: bytes) -> None:
    """Write all of it."""
    if isinstance(destination, Path):
        write_atomically(destination, content)
    else:
        write_whole(destination, content)
