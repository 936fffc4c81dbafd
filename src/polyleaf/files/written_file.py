"""A file that is there as a whole or not at all: where it may be written, and how."""

from __future__ import annotations

import os
import secrets
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import BinaryIO

# Signals that end a process before it could clear up, unless it asks to be told.
_ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
_KINDS = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def path_text(path: object, allowed: str = "str or os.PathLike") -> str:
    """Return a path as text, or raise TypeError; `allowed` is what the error says it must be."""
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise TypeError(f"path must be {allowed}; got {path!r:.80} of type {type(path).__name__}.")
    return text


def checked_target(path: object, what: str = "the model", allowed: str = "str or os.PathLike") -> Path:
    """Return where a file of this path would be written: of a link, the file that it leads to.

    `what` is what errors call that which is to be saved, `allowed` what they say that a path is.

    Raises
    ------
    FileNotFoundError
        When there is no such folder.
    IsADirectoryError
        When the path is that of a folder.
    ValueError
        When there is something that is no regular file, such as a device.
    """
    target = Path(os.path.realpath(path_text(path, allowed)))  # a link stays one
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(target.parent)!r} to save {what} in")
    if target.is_dir():
        raise IsADirectoryError(f"{str(target)!r} is a folder; the path of a file is needed")
    if os.path.lexists(target) and (kind := special_kind(os.lstat(target).st_mode)) is not None:
        raise ValueError(f"{str(target)!r} is {kind}; the path of a regular file, or of none yet, is needed.")
    return target


def special_kind(mode: int) -> str | None:
    """Return in words what is no regular file; None where it is one."""
    if stat.S_ISREG(mode):
        return None
    return next((words for is_kind, words in _KINDS if is_kind(mode)), "no regular file")


def write_atomically(target: Path, *pieces: bytes | bytearray | memoryview) -> None:
    """Write a file of these pieces as `file_in_place_of` does."""
    with file_in_place_of(target) as file:
        for piece in pieces:
            file.write(piece)


@contextmanager
def file_in_place_of(target: Path) -> Iterator[BinaryIO]:
    """Open a file beside the target, and rename it at the end: readers see the old file or the new one.

    A file that is replaced hands on its mode and, where that is allowed, its owner. Nothing is left beside
    it by an error, nor by a signal that ends the process while its main thread is writing. Errors name the
    target, and not the file beside it.
    """
    before = os.stat(target) if target.exists() else None
    # Its length does not depend on that of the target's name, which may be as long as the disk allows.
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    with _removed_when_ended(temporary):
        try:
            # Until it has the mode of the file it replaces, it is nobody else's to read.
            opened = os.open(
                temporary,
                os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0),
                0o666 if before is None else 0o600,
            )
            with open(opened, "wb") as file:
                if before is not None:
                    _hand_on(before, temporary)
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException as error:
            temporary.unlink(missing_ok=True)
            if isinstance(error, OSError) and str(error.filename) == str(temporary):
                raise OSError(error.errno, error.strerror, str(target)) from error
            raise


def _hand_on(before: os.stat_result, path: Path) -> None:
    """Give a new file the owner and the mode of the one it is to replace."""
    now = os.stat(path)
    if hasattr(os, "chown") and (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        with suppress(PermissionError):  # another's file in a folder that both may write to
            os.chown(path, before.st_uid, before.st_gid)
    os.chmod(path, stat.S_IMODE(before.st_mode) & 0o777)


@contextmanager
def _removed_when_ended(path: Path) -> Iterator[None]:
    """Remove a file when a signal ends the process that would otherwise leave it behind.

    Only signals that nobody handles count, and only the main thread may handle them.
    """

    def end(number: int, _: FrameType | None) -> None:
        path.unlink(missing_ok=True)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    taken = []
    if threading.current_thread() is threading.main_thread():
        taken = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
