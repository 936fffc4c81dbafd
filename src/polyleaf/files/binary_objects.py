"""Binary file objects in the place of paths: what is read from one, and what is written to one.

An object need not be a file on a disk: a buffer, a member of an archive, what decompresses another file, or
what a socket makes of itself. It is read and written from where it stands, and never asked to go back.
"""

from __future__ import annotations

import os
from typing import Any, Protocol, TypeAlias, TypeGuard


class BinaryReader(Protocol):
    """Whatever gives bytes: up to so many, none at its end."""

    def read(self, size: int, /) -> bytes: ...


class BinaryWriter(Protocol):
    """Whatever takes bytes, and may say how many of them it took."""

    def write(self, data: bytes, /) -> object: ...


ReadFrom: TypeAlias = str | os.PathLike[str] | BinaryReader
WrittenTo: TypeAlias = str | os.PathLike[str] | BinaryWriter

_BLOCK_BYTES = 2**24  # handed over or asked for at a time


class NotBinaryError(TypeError):
    """The object is one of text."""


def is_reader(source: object) -> TypeGuard[BinaryReader]:
    """Whether something is read from as it is: no path, but an object that reads."""
    return not isinstance(source, str | bytes | os.PathLike) and callable(getattr(source, "read", None))


def is_writer(target: object) -> TypeGuard[BinaryWriter]:
    """Whether something is written to as it is: no path, but an object that writes."""
    return not isinstance(target, str | bytes | os.PathLike) and callable(getattr(target, "write", None))


def object_name(file: object) -> str:
    """Return what errors call a file object: the name it has, or what it is."""
    name = getattr(file, "name", None)
    return repr(name) if isinstance(name, str) and name else f"the {type(file).__name__} given"


def check_binary(file: object, asked: str) -> None:
    """Raise unless an object takes bytes, and is open for what is asked: "reading" or "writing".

    Raises
    ------
    TypeError
        For an object of text.
    ValueError
        For one that is closed, or open for something else.
    """
    if hasattr(file, "encoding"):
        raise _text_error(file)
    if getattr(file, "closed", False) is True:
        raise ValueError(f"{object_name(file)} is closed.")
    can = getattr(file, "readable" if asked == "reading" else "writable", None)
    if callable(can) and not can():
        raise ValueError(f"{object_name(file)} is not open for {asked}.")


def _text_error(file: object) -> NotBinaryError:
    return NotBinaryError(f"{object_name(file)} is open for text; a model is bytes: open it in binary mode.")


class WholeReader:
    """Reads as much as is asked for, however little the object gives at a time.

    Parameters
    ----------
    file : BinaryReader
        The object, checked.
    """

    def __init__(self, file: BinaryReader) -> None:
        self._file = file

    def read(self, size: int) -> bytearray:
        """Return so many bytes, fewer at the end. Memory grows with what has come, not with what is asked."""
        content = bytearray()
        while len(content) < size:
            wanted = min(size - len(content), _BLOCK_BYTES)
            block: Any = self._file.read(wanted)  # of what is passed as a file, nothing is sure
            if isinstance(block, str):
                raise _text_error(self._file)
            if block is None:
                raise ValueError("it has nothing to read yet; an object that waits is needed.")
            if len(block) > wanted:
                raise ValueError(f"its read({wanted}) returned {len(block)} bytes.")
            if len(block) == 0:
                break
            content += block
        return content


def write_whole(file: BinaryWriter, *pieces: bytes | memoryview) -> None:
    """Write all pieces, however little the object takes at a time.

    Raises
    ------
    OSError
        When the object takes nothing more.
    """
    for piece in pieces:
        rest = memoryview(piece)
        while len(rest) > 0:
            block = bytes(rest[:_BLOCK_BYTES])  # objects that take nothing but bytes are common
            taken = file.write(block)
            n_taken = taken if type(taken) is int else len(block)
            if not 0 < n_taken <= len(block):
                raise OSError(f"{object_name(file)} took {n_taken} of {len(block)} bytes.")
            rest = rest[n_taken:]
