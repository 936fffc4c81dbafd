"""One file for a fitted model: the forest's arrays and a page of JSON, in the safetensors format.

There is no pickle in it, and nothing in it is run: a file from a stranger is at worst refused. The metadata
has one entry, ``"polyleaf"``, whose JSON opens with a SHA-256 over the whole file (read with zeros in the
place of the sum), so that a file that was cut or altered anywhere is refused. The sum guards against damage,
not against forgery; everything read is therefore checked as well.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import safetensors.numpy

from polyleaf.data.inputs import Array
from polyleaf.model.fitted import SavedModel
from polyleaf.model.header import (
    METADATA_KEY,
    ArrayPlace,
    array_places,
    check_header_size,
    page_text,
    read_header,
)
from polyleaf.model.page import FORMAT_NAME, FORMAT_VERSION, describe, n_outputs_of, read_page
from polyleaf.model.written_file import checked_target, path_text, special_kind, write_atomically

_NO_SUM = "0" * 64
# The JSON is itself a string in the JSON of the safetensors header: its quotes are escaped.
_SUM_PATTERN = re.compile(rb'\{\\"sha256\\":\\"([0-9a-f]{64})\\"')
_BLOCK_BYTES = 2**24  # read at a time
_LONGEST_PROBLEM = 500  # characters of what a hostile file may have an error say


def write_model(path: str | os.PathLike[str], model: SavedModel) -> None:
    """Write a model to one file.

    The file appears under its name only when it is complete. Parameters that JSON cannot hold (a callable
    objective or metric, a RandomState) are stored as null.

    Parameters
    ----------
    path : str or os.PathLike
        Where to. An existing file is replaced, and hands on its mode; of a link, the file it leads to.
    model : SavedModel
        What to write.

    Raises
    ------
    ValueError
        When the path is that of a device, a FIFO or the like, or `read_model` would refuse the file.
    """
    target = checked_target(path)
    page = {"sha256": _NO_SUM, **describe(model)}
    text = json.dumps(page, separators=(",", ":"), allow_nan=False)
    arrays = model.fitted.forest.to_arrays()
    content = bytearray(safetensors.numpy.save(arrays, metadata={METADATA_KEY: text}))
    place = _SUM_PATTERN.search(content)
    if place is None:  # pragma: no cover - the page opens with the sum
        raise RuntimeError("the checksum's place was not found in the file")
    _check_readable(content, arrays)
    start, stop = place.span(1)
    content[start:stop] = hashlib.sha256(content).hexdigest().encode()
    try:
        write_atomically(target, content)
    except OSError as error:  # which may name the file beside the target, or none
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, path_text(path)) from error


def _check_readable(content: bytearray, arrays: Mapping[str, Array]) -> None:
    """Raise ValueError where `read_model` would refuse what is about to be written."""
    try:
        header_size = int.from_bytes(content[:8], "little")
        check_header_size(header_size)
        outer = read_header(bytes(content[8 : 8 + header_size]))
        page = _page(outer)
        array_places(outer, n_outputs_of(page), len(content) - 8 - header_size)
        read_page(page, arrays)
    except (ValueError, TypeError) as error:
        raise ValueError(f"this model cannot be saved, as no file of it could be read: {error}") from error


def read_model(path: str | os.PathLike[str]) -> SavedModel:
    """Read a model that `write_model` wrote.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    ValueError
        When the file is not a model, was truncated or altered, is from a newer version, or is inconsistent.
    """
    name = path_text(path)
    if os.path.isdir(name):
        raise ValueError(f"{name!r} is a folder, not a polyleaf model file.")
    # Before it is opened: a FIFO would wait for a writer.
    if (kind := special_kind(os.stat(name).st_mode)) is not None:
        raise ValueError(f"{name!r} is {kind}, not a polyleaf model file.")
    with open(name, "rb") as file:
        try:
            return _read(file)
        except OSError:
            raise
        except MemoryError as error:
            raise ValueError(
                f"{name!r} cannot be read as a polyleaf model: it does not fit in memory."
            ) from error
        except Exception as error:
            # Whatever a hostile file provokes in the parsers below it is told as one thing.
            problem = str(error)
            if len(problem) > _LONGEST_PROBLEM:
                problem = f"{problem[:_LONGEST_PROBLEM]} ..."
            raise ValueError(f"{name!r} cannot be read as a polyleaf model: {problem}") from error


# --- reading it back ---------------------------------------------------------------------------------------


def _read(file: BinaryIO) -> SavedModel:
    size = os.fstat(file.fileno()).st_size
    length = file.read(8)
    header_size = int.from_bytes(length, "little")
    if len(length) < 8 or header_size > size - 8:
        raise ValueError("it is truncated, or not a model at all.")
    check_header_size(header_size)
    header = file.read(header_size)
    outer = read_header(header)
    page = _page(outer)
    found = page.get("format_version")
    if type(found) is not int or found < 1:
        raise ValueError(f"its format_version is {found!r:.80}, which is no version.")
    if found > FORMAT_VERSION:
        raise ValueError(
            f"it has format version {found} (written by polyleaf {page.get('polyleaf_version')!r:.80}), "
            f"newer than version {FORMAT_VERSION}, which this polyleaf reads; upgrade polyleaf."
        )
    places = array_places(outer, n_outputs_of(page), size - 8 - header_size)
    digest = hashlib.sha256(length + _without_sum(header, page))
    arrays = {place.name: _read_array(file, place, digest) for place in places}
    if digest.hexdigest() != page["sha256"]:
        raise ValueError("it is damaged: its checksum does not match (truncated or altered).")
    return read_page(page, arrays)


def _page(outer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON page of a model from the header of a safetensors file."""
    page = json.loads(page_text(outer), parse_constant=_refuse_constant)
    if not isinstance(page, dict) or page.get("format") != FORMAT_NAME:
        raise ValueError("its metadata is not that of a polyleaf model.")
    return page


def _refuse_constant(text: str) -> float:
    raise ValueError(f"its metadata holds {text}, which is no number.")


def _without_sum(header: bytes, page: Mapping[str, Any]) -> bytes:
    """Return a header as it was when the sum was taken."""
    place = _SUM_PATTERN.search(header)
    if place is None or page.get("sha256") != place.group(1).decode():
        raise ValueError("its checksum is missing.")
    start, stop = place.span(1)
    return header[:start] + _NO_SUM.encode() + header[stop:]


def _read_array(file: BinaryIO, place: ArrayPlace, digest: Any) -> npt.NDArray[Any]:
    """Return the array that comes next in a file, and add its bytes to the sum."""
    array = np.empty(place.length, place.dtype.newbyteorder("<"))
    rest = array.view(np.uint8).data
    while len(rest) > 0:
        block = rest[:_BLOCK_BYTES]
        n_read = file.readinto(block)  # type: ignore[attr-defined]
        if n_read == 0:
            raise ValueError("it is truncated: it became shorter while it was read.")
        digest.update(block[:n_read])
        rest = rest[n_read:]
    return array.astype(place.dtype, copy=False)
