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
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import safetensors.numpy

from polyleaf.model.fitted import SavedModel
from polyleaf.model.page import FORMAT_NAME, FORMAT_VERSION, describe, read_page

_METADATA_KEY = "polyleaf"
_NO_SUM = "0" * 64
# The JSON is itself a string in the JSON of the safetensors header: its quotes are escaped.
_SUM_PATTERN = re.compile(rb'\{\\"sha256\\":\\"([0-9a-f]{64})\\"')
_LARGEST_HEADER = 100_000_000  # what safetensors itself accepts


def write_model(path: str | os.PathLike[str], model: SavedModel) -> None:
    """Write a model to one file.

    The file appears under its name only when it is complete. Parameters that JSON cannot hold (a callable
    objective or metric, a RandomState) are stored as null.

    Parameters
    ----------
    path : str or os.PathLike
        Where to. An existing file is replaced.
    model : SavedModel
        What to write.
    """
    target = checked_target(path)
    page = {"sha256": _NO_SUM, **describe(model)}
    text = json.dumps(page, separators=(",", ":"), allow_nan=False)
    arrays = model.fitted.forest.to_arrays()
    content = bytearray(safetensors.numpy.save(arrays, metadata={_METADATA_KEY: text}))
    place = _SUM_PATTERN.search(content)
    if place is None:  # pragma: no cover - the page opens with the sum
        raise RuntimeError("the checksum's place was not found in the file")
    start, stop = place.span(1)
    content[start:stop] = hashlib.sha256(content).hexdigest().encode()
    _write_atomically(target, content)


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
            raise ValueError(f"{name!r} cannot be read as a polyleaf model: {error}") from error


def path_text(path: str | os.PathLike[str]) -> str:
    """Return a path as text, or raise TypeError."""
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"path must be str or os.PathLike; got {path!r} of type {type(path).__name__}.")
    return text


def checked_target(path: str | os.PathLike[str]) -> Path:
    """Return where a file of this path would be written; its folder must exist."""
    target = Path(os.path.realpath(path_text(path)))  # a link stays one
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(target.parent)!r} to save the model in")
    if target.is_dir():
        raise IsADirectoryError(f"{str(target)!r} is a folder; the path of a file is needed")
    return target


def _write_atomically(target: Path, content: bytearray) -> None:
    """Write beside the target, then rename: readers see the old file or the new one, never half of it."""
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


# --- reading it back ---------------------------------------------------------------------------------------


def _read(file: BinaryIO) -> SavedModel:
    size = os.fstat(file.fileno()).st_size
    length = file.read(8)
    header_size = int.from_bytes(length, "little")
    if len(length) < 8 or header_size > min(size - 8, _LARGEST_HEADER):
        raise ValueError("it is truncated, or not a model at all.")
    header = file.read(header_size)
    page = _page(header)
    found = page.get("format_version")
    if type(found) is not int or found < 1:
        raise ValueError(f"its format_version is {found!r}, which is no version.")
    if found > FORMAT_VERSION:
        raise ValueError(
            f"it has format version {found} (written by polyleaf {page.get('polyleaf_version')!r}), newer "
            f"than version {FORMAT_VERSION}, which this polyleaf reads; upgrade polyleaf."
        )
    content = length + header + file.read()
    _check_sum(content, header, page)
    return read_page(page, safetensors.numpy.load(content))


def _page(header: bytes) -> dict[str, Any]:
    """Return the JSON page of a model from the header of a safetensors file."""
    try:
        outer = json.loads(header)
        text = outer["__metadata__"][_METADATA_KEY]
    except (KeyError, TypeError):
        raise ValueError("it is a safetensors file, but not a polyleaf model.") from None
    except (ValueError, RecursionError):
        raise ValueError("it is damaged, or not a model at all.") from None
    page = json.loads(text, parse_constant=_refuse_constant)
    if not isinstance(page, dict) or page.get("format") != FORMAT_NAME:
        raise ValueError("its metadata is not that of a polyleaf model.")
    return page


def _refuse_constant(text: str) -> float:
    raise ValueError(f"its metadata holds {text}, which is no number.")


def _check_sum(content: bytes, header: bytes, page: Mapping[str, Any]) -> None:
    place = _SUM_PATTERN.search(header)
    if place is None or page.get("sha256") != place.group(1).decode():
        raise ValueError("its checksum is missing.")
    start, stop = (8 + edge for edge in place.span(1))
    digest = hashlib.sha256(content[:start])
    digest.update(_NO_SUM.encode())
    digest.update(memoryview(content)[stop:])
    if digest.hexdigest() != page["sha256"]:
        raise ValueError("it is damaged: its checksum does not match (truncated or altered).")
