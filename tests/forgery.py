"""Model files taken apart and put together again, with a checksum that is right whatever they hold."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from polyleaf.files.sealed_file import _SUM_PATTERN

Change = Callable[[Any], Any]
_CODES = {
    "f8": "F64",
    "f4": "F32",
    "f2": "F16",
    "i8": "I64",
    "i4": "I32",
    "u4": "U32",
    "u2": "U16",
    "u1": "U8",
}


def page_of(content: bytes) -> Any:
    """The page of a model file."""
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return json.loads(header["__metadata__"]["polyleaf"])


def arrays_of(content: bytes) -> dict[str, np.ndarray[Any, Any]]:
    """Its arrays, which may be changed."""
    arrays = safetensors.numpy.load(content)  # in any order
    return {name: np.array(arrays[name]) for name in sorted(arrays)}


def text_of(page: Any) -> str:
    """A page as text, ready for a checksum."""
    if isinstance(page, dict) and "sha256" in page:
        page = {"sha256": "0" * 64, **{key: value for key, value in page.items() if key != "sha256"}}
    return json.dumps(page, separators=(",", ":"))


def put_together(text: str, arrays: dict[str, Any], change_header: Change | None = None) -> bytes:
    """The bytes of a file with this page and these arrays; its header may be changed on the way."""
    header: dict[str, Any] = {"__metadata__": {"polyleaf": text}}
    reached = 0
    for name, array in arrays.items():
        end = reached + array.nbytes
        code = _CODES[array.dtype.str[1:]]
        header[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [reached, end]}
        reached = end
    if change_header is not None:
        header = change_header(header) or header
    raw = json.dumps(header, separators=(",", ":")).encode()
    data = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values())
    return with_sum(len(raw).to_bytes(8, "little") + raw + data)


def with_sum(content: bytes) -> bytes:
    """The same with its checksum made right, where it has a place for one."""
    place = _SUM_PATTERN.search(content)
    if place is None:
        return content
    start, stop = place.span(1)
    blank = content[:start] + b"0" * 64 + content[stop:]
    return content[:start] + hashlib.sha256(blank).hexdigest().encode() + content[stop:]


def forge(
    path: Path,
    change_page: Change | None = None,
    change_arrays: Change | None = None,
    text: str | None = None,
) -> None:
    """Rewrite a model's page or arrays, and make the checksum right again."""
    content = path.read_bytes()
    page, arrays = page_of(content), arrays_of(content)
    if change_page:
        page = change_page(page) or page
    if change_arrays:
        change_arrays(arrays)
    path.write_bytes(put_together(text_of(page | {"sha256": ""}) if text is None else text, arrays))
