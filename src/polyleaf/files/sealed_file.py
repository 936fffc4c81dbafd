"""One file of arrays and a page of JSON, in the safetensors format, with a checksum over all of it.

There is no pickle in it, and nothing in it is run: a file from a stranger is at worst refused. The metadata
has one entry, ``"polyleaf"``, whose JSON opens with a SHA-256 over the whole file (read with zeros in the
place of the sum), so that a file that was cut or altered anywhere is refused. The sum guards against damage,
not against forgery; everything read is therefore checked as well.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, BinaryIO, TypeVar

import numpy as np
import numpy.typing as npt

from polyleaf.files.binary_objects import (
    NotBinaryError,
    ReadFrom,
    WholeReader,
    WrittenTo,
    check_binary,
    is_reader,
    is_writer,
    object_name,
    write_whole,
)
from polyleaf.files.header import (
    ArrayPlace,
    check_header_size,
    make_header,
    page_text,
    read_header,
)
from polyleaf.files.written_file import checked_target, path_text, special_kind, write_atomically

Arrays = Mapping[str, npt.NDArray[Any]]
Content = TypeVar("Content")

_NO_SUM = "0" * 64
# The JSON is itself a string in the JSON of the safetensors header: its quotes are escaped.
_SUM_PATTERN = re.compile(rb'\{\\"sha256\\":\\"([0-9a-f]{64})\\"')
_BLOCK_BYTES = 2**24  # read at a time
_LONGEST_PROBLEM = 500  # characters of what a hostile file may have an error say
# Files there are, for who takes one for another.
_FORMATS = {
    "polyleaf": "a model, which load_model reads",
    "polyleaf-binned": "a table, which load_binned reads",
}


@dataclass(frozen=True)
class FileKind:
    """What is told apart from other files.

    Attributes
    ----------
    format_name : str
        What its page says it is.
    version : int
        The newest that can be read.
    words : str
        What errors call it: "model".
    holds : str
        What its header is for.
    places : callable
        From the JSON of a header, the page and the number of bytes after it (None: not known yet), the arrays
        of the file as they stand there (`array_places`), or ValueError where they are not those of such a
        file.
    mapped : bool, default=False
        Whether arrays are mapped into memory while they are read, instead of being copied there. Such a file
        is on a disk: no file object takes the place of its path.
    """

    format_name: str
    version: int
    words: str
    holds: str
    places: Callable[[Mapping[str, Any], Mapping[str, Any], int | None], list[ArrayPlace]]
    mapped: bool = False

    @property
    def paths(self) -> str:
        """What a path of such a file may be, in words."""
        return "str or os.PathLike" if self.mapped else "str, os.PathLike or a binary file object"


def write_sealed(
    path: WrittenTo,
    kind: FileKind,
    page: Mapping[str, Any],
    arrays: Arrays,
    check: Callable[[dict[str, Any], Arrays], object],
) -> None:
    """Write a file, which appears under its name only when it is complete.

    Parameters
    ----------
    path : str, os.PathLike or binary file object
        Where to. An existing file is replaced, and hands on its mode; of a link, the file it leads to. An
        object gets nothing before all of the file is known to be right.
    kind : FileKind
        Of which kind.
    page : mapping
        What JSON holds of it beside the arrays.
    arrays : mapping of str to ndarray
        Row by row, in dtypes of the format.
    check : callable
        From the page as it will be read, and the arrays, what `read_sealed` is to make of them, or an error.

    Raises
    ------
    ValueError
        When the path is that of a device, a FIFO or the like, or `read_sealed` would refuse the file.
    """
    writer = path if not kind.mapped and is_writer(path) else None
    target = None
    if writer is not None:
        check_binary(writer, "writing")
    else:
        target = checked_target(path, f"the {kind.words}", kind.paths)
    told = {
        "sha256": _NO_SUM,
        "format": kind.format_name,
        "format_version": kind.version,
        "polyleaf_version": version("polyleaf"),
    }
    text = json.dumps(told | dict(page), separators=(",", ":"), allow_nan=False)
    header, order = make_header(arrays, text)
    place = _SUM_PATTERN.search(header)
    if place is None:  # pragma: no cover - the page opens with the sum
        raise RuntimeError("the checksum's place was not found in the file")
    try:
        check_header_size(len(header) - 8, kind.holds)
        outer = read_header(header[8:], kind.words, kind.holds)
        read = _page(outer, kind)
        kind.places(outer, read, sum(array.nbytes for array in arrays.values()))
        check(read, arrays)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"this {kind.words} cannot be saved, as no file of it could be read: {error}"
        ) from error
    digest = hashlib.sha256(header)
    pieces = [_bytes_of(arrays[name]) for name in order]
    for piece in pieces:
        digest.update(piece)
    start, stop = place.span(1)
    sealed = header[:start] + digest.hexdigest().encode() + header[stop:]
    if target is None:
        assert writer is not None
        write_whole(writer, sealed, *pieces)
        return
    try:
        write_atomically(target, sealed, *pieces)
    except OSError as error:  # which may name the file beside the target, or none
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, path_text(path)) from error


def read_sealed(path: ReadFrom, kind: FileKind, make: Callable[[dict[str, Any], Arrays], Content]) -> Content:
    """Return what `make` makes of the page and the arrays of a file that `write_sealed` wrote.

    A file object is read from where it stands up to its end, which must be that of the file.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    ValueError
        When the file is not of this kind, was truncated or altered, is from a newer version, or `make` finds
        it inconsistent.
    """
    if not kind.mapped and is_reader(path):
        check_binary(path, "reading")
        with _told_of(object_name(path), kind):
            return _read(WholeReader(path), None, kind, make)
    name = path_text(path, kind.paths)
    if os.path.isdir(name):
        raise ValueError(f"{name!r} is a folder, not a polyleaf {kind.words} file.")
    # Before it is opened: a FIFO would wait for a writer.
    if (special := special_kind(os.stat(name).st_mode)) is not None:
        raise ValueError(f"{name!r} is {special}, not a polyleaf {kind.words} file.")
    with open(name, "rb") as file, _told_of(repr(name), kind):
        return _read(file, os.fstat(file.fileno()).st_size, kind, make)


@contextmanager
def _told_of(name: str, kind: FileKind) -> Iterator[None]:
    """Whatever a hostile file provokes in the parsers below is told as one thing, which names the file."""
    try:
        yield
    except (OSError, NotBinaryError):
        raise
    except MemoryError as error:
        raise ValueError(
            f"{name} cannot be read as a polyleaf {kind.words}: it does not fit in memory."
        ) from error
    except Exception as error:
        problem = str(error)
        if len(problem) > _LONGEST_PROBLEM:
            problem = f"{problem[:_LONGEST_PROBLEM]} ..."
        raise ValueError(f"{name} cannot be read as a polyleaf {kind.words}: {problem}") from error


# --- reading it back ---------------------------------------------------------------------------------------


def _read(
    file: BinaryIO | WholeReader,
    size: int | None,
    kind: FileKind,
    make: Callable[[dict[str, Any], Arrays], Content],
) -> Content:
    """Read a file of so many bytes; None: as many as its header says, which is held against its end."""
    length = bytes(file.read(8))
    header_size = int.from_bytes(length, "little")
    if len(length) < 8 or (size is not None and header_size > size - 8):
        raise ValueError(f"it is truncated, or not a {kind.words} at all.")
    check_header_size(header_size, kind.holds)
    header = bytes(file.read(header_size))
    if len(header) < header_size:
        raise ValueError(f"it is truncated, or not a {kind.words} at all.")
    outer = read_header(header, kind.words, kind.holds)
    page = _page(outer, kind)
    found = page.get("format_version")
    if type(found) is not int or found < 1:
        raise ValueError(f"its format_version is {found!r:.80}, which is no version.")
    if found > kind.version:
        raise ValueError(
            f"it has format version {found} (written by polyleaf {page.get('polyleaf_version')!r:.80}), "
            f"newer than version {kind.version}, which this polyleaf reads; upgrade polyleaf."
        )
    places = kind.places(outer, page, None if size is None else size - 8 - header_size)
    digest = hashlib.sha256(length + _without_sum(header, page))
    if isinstance(file, WholeReader):
        arrays = {place.name: _take_array(file, place, digest) for place in places}
    elif kind.mapped:
        arrays = _map_arrays(file, 8 + header_size, places, digest)
    else:
        arrays = {place.name: _read_array(file, place, digest) for place in places}
    if digest.hexdigest() != page["sha256"]:
        raise ValueError("it is damaged: its checksum does not match (truncated or altered).")
    if isinstance(file, WholeReader) and len(file.read(1)) > 0:
        raise ValueError("it goes on behind the arrays that its header tells of (altered, or not alone).")
    return make(page, arrays)


def _page(outer: Mapping[str, Any], kind: FileKind) -> dict[str, Any]:
    """Return the JSON page from the header of a safetensors file."""
    page = json.loads(page_text(outer, kind.words, kind.holds), parse_constant=_refuse_constant)
    found = page.get("format") if isinstance(page, dict) else None
    if found != kind.format_name:
        if isinstance(found, str) and found in _FORMATS:
            raise ValueError(f"it is {_FORMATS[found]}.")
        raise ValueError(f"its metadata is not that of a polyleaf {kind.words}.")
    return page  # type: ignore[no-any-return]


def _refuse_constant(text: str) -> float:
    raise ValueError(f"its metadata holds {text}, which is no number.")


def _without_sum(header: bytes, page: Mapping[str, Any]) -> bytes:
    """Return a header as it was when the sum was taken."""
    place = _SUM_PATTERN.search(header)
    if place is None or page.get("sha256") != place.group(1).decode():
        raise ValueError("its checksum is missing.")
    start, stop = place.span(1)
    return header[:start] + _NO_SUM.encode() + header[stop:]


def _bytes_of(array: npt.NDArray[Any]) -> memoryview:
    """Return the bytes of an array in the order of the format, without a copy where it has that order."""
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return little.reshape(-1).view(np.uint8).data


def _read_array(file: BinaryIO, place: ArrayPlace, digest: Any) -> npt.NDArray[Any]:
    """Return the array that comes next in a file, and add its bytes to the sum."""
    array = np.empty(place.shape, place.dtype.newbyteorder("<"))
    rest = array.reshape(-1).view(np.uint8).data
    while len(rest) > 0:
        block = rest[:_BLOCK_BYTES]
        n_read = file.readinto(block)  # type: ignore[attr-defined]
        if n_read == 0:
            raise ValueError("it is truncated: it became shorter while it was read.")
        digest.update(block[:n_read])
        rest = rest[n_read:]
    return array.astype(place.dtype, copy=False)


def _take_array(file: WholeReader, place: ArrayPlace, digest: Any) -> npt.NDArray[Any]:
    """Return the array that comes next in what may be shorter than its header says, as `_read_array` does."""
    n_bytes = place.length * place.dtype.itemsize
    content = file.read(n_bytes)
    if len(content) < n_bytes:
        raise ValueError("it is truncated: it ends within its arrays.")
    digest.update(content)
    array = np.frombuffer(content, place.dtype.newbyteorder("<")).reshape(place.shape)
    return array.astype(place.dtype, copy=False)


def _map_arrays(
    file: BinaryIO, start: int, places: list[ArrayPlace], digest: Any
) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a file in its pages, which are read as they are needed, and sum their bytes."""
    mapped = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), dtype=np.uint8)
    arrays = {}
    for place in places:
        own = mapped[start + place.begin :][: place.length * place.dtype.itemsize]
        for first in range(0, len(own), _BLOCK_BYTES):
            digest.update(own[first : first + _BLOCK_BYTES].data)
        values = own.view(place.dtype.newbyteorder("<")).reshape(place.shape)
        arrays[place.name] = values.astype(place.dtype, copy=False)
    return arrays
