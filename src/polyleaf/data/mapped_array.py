"""Arrays that lie in a temporary file, of which the system keeps in memory what there is room for."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.data.memory import in_words

# File systems that are memory: a file there saves none.
_IN_MEMORY = frozenset({"tmpfs", "ramfs"})


def mapped_array(shape: tuple[int, int], name: str) -> FloatArray:
    """Return an array of float64 in a file without a name, which is gone when the array is.

    The file is in the folder that :mod:`tempfile` says.

    Parameters
    ----------
    shape : tuple of int
        Of the array, which has some numbers.
    name : str
        What errors call it.

    Raises
    ------
    MemoryError
        When there is no room for it on the disk.
    """
    n_bytes = shape[0] * shape[1] * 8
    with tempfile.TemporaryFile(prefix="polyleaf-") as file:
        try:
            # All of it now: a page that finds no room later would end the process.
            os.posix_fallocate(file.fileno(), 0, n_bytes)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise MemoryError(
                f"{name} of {in_words(n_bytes)} fit neither into memory nor into a file in "
                f"{tempfile.gettempdir()!r}; set TMPDIR to a folder with more room."
            ) from error
        return np.memmap(file, dtype=np.float64, mode="r+", shape=shape)


def can_map(mounts: str = "/proc/self/mounts") -> bool:
    """Return whether temporary files can be reserved, and are on a disk rather than in memory."""
    if not hasattr(os, "posix_fallocate"):
        return False
    return _file_system(Path(tempfile.gettempdir()).resolve(), mounts) not in _IN_MEMORY


def _file_system(folder: Path, mounts: str) -> str | None:
    """Return the type of the file system that a folder is in; None where the system does not say."""
    try:
        lines = Path(mounts).read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    types: dict[Path, str] = {}
    for line in lines:  # of several at one place the last one counts
        _, mounted_at, kind, *_ = line.split(" ")
        types[Path(mounted_at.replace("\\040", " "))] = kind
    for place in (folder, *folder.parents):
        if place in types:
            return types[place]
    return None
