"""The header of a file of arrays: how large it may be, and where it says that the arrays are.

What it says is held against the size of the file before an array is read: a file that is not what it says
costs neither memory nor time. The format is that of safetensors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

METADATA_KEY = "polyleaf"
MOST_HEADER_BYTES = 2**25
MOST_HEADER_VALUES = 2_000_000
# What the format calls the types of numbers. Arrays of the last ones stand first in a file.
_CODES: dict[np.dtype[Any], str] = {
    np.dtype(kind): code
    for kind, code in (
        (np.bool_, "BOOL"),
        (np.uint8, "U8"),
        (np.int8, "I8"),
        (np.int16, "I16"),
        (np.uint16, "U16"),
        (np.float16, "F16"),
        (np.int32, "I32"),
        (np.uint32, "U32"),
        (np.float32, "F32"),
        (np.float64, "F64"),
        (np.int64, "I64"),
        (np.uint64, "U64"),
    )
}
STORED_DTYPES = frozenset(_CODES)


@dataclass(frozen=True)
class ArrayKind:
    """What an array of a file may be.

    Attributes
    ----------
    dtypes : tuple of dtype
        One of these.
    ndim : int, default=1
        How many dimensions it has.
    """

    dtypes: tuple[np.dtype[Any], ...]
    ndim: int = 1


@dataclass(frozen=True)
class ArrayPlace:
    """An array of a file: its name, its dtype, its shape and the byte after the header at which it begins."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int

    @property
    def length(self) -> int:
        """How many values it has."""
        return prod(self.shape)


def make_header(arrays: Mapping[str, npt.NDArray[Any]], text: str) -> tuple[bytes, list[str]]:
    """Return the header of a file with these arrays and this page, its size in front, and their order."""
    ranks = {dtype: rank for rank, dtype in enumerate(_CODES)}
    order = sorted(arrays, key=lambda name: (-ranks[arrays[name].dtype], name))
    header: dict[str, Any] = {"__metadata__": {METADATA_KEY: text}}
    reached = 0
    for name in order:
        array = arrays[name]
        extent = [reached, reached + array.nbytes]
        header[name] = {
            "dtype": _CODES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": extent,
        }
        reached = extent[1]
    raw = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    raw += b" " * (-len(raw) % 8)  # so that arrays are aligned
    return len(raw).to_bytes(8, "little") + raw, order


def check_header_size(n_bytes: int, holds: str) -> None:
    """Raise ValueError for a header that would not be read; `holds` says what it is for."""
    if n_bytes > MOST_HEADER_BYTES:
        raise ValueError(
            f"its header has {n_bytes:,} bytes; at most {MOST_HEADER_BYTES:,} are allowed for {holds}."
        )


def read_header(header: bytes, words: str, holds: str) -> dict[str, Any]:
    """Return the JSON of a header.

    Raises
    ------
    ValueError
        When it is none, or holds more values than are allowed.
    """
    _check_values(header.count(b",") + header.count(b"[") + header.count(b"{"), holds)
    try:
        outer = json.loads(header)
    except (ValueError, RecursionError):
        raise ValueError(f"it is damaged, or not a {words} at all.") from None
    if not isinstance(outer, dict):
        raise ValueError(f"it is a safetensors file, but not a polyleaf {words}.")
    return outer


def page_text(outer: Mapping[str, Any], words: str, holds: str) -> str:
    """Return the text of the page in a header."""
    metadata = outer.get("__metadata__")
    text = metadata.get(METADATA_KEY) if isinstance(metadata, dict) else None
    if not isinstance(text, str):
        raise ValueError(f"it is a safetensors file, but not a polyleaf {words}.")
    _check_values(text.count(",") + text.count("[") + text.count("{"), holds)  # here without escapes
    return text


def _check_values(n_values: int, holds: str) -> None:
    """Every value of a JSON text but the first comes after a comma or a bracket, or with a key that does."""
    if n_values > MOST_HEADER_VALUES:
        raise ValueError(
            f"its header holds about {n_values:,} values; at most {MOST_HEADER_VALUES:,} are allowed for "
            f"{holds}."
        )


def array_places(
    outer: Mapping[str, Any], layout: Mapping[str, ArrayKind], n_bytes: int | None, words: str
) -> list[ArrayPlace]:
    """Return the arrays of a file in the order in which they stand there.

    Parameters
    ----------
    outer : mapping
        What `read_header` returned.
    layout : mapping of str to ArrayKind
        The arrays that such a file may have.
    n_bytes : int or None
        What the file holds after the header; None: that is not known before it is read.
    words : str
        What errors call such a file.

    Raises
    ------
    ValueError
        When there is an array that is none of these, or they would not fill the file exactly.
    """
    entries = {name: entry for name, entry in outer.items() if name != "__metadata__"}
    unknown = [name for name in entries if name not in layout]
    if unknown:
        raise ValueError(f"it has an array {unknown[0]!r:.80}, which no {words} has.")
    found = []
    for name, entry in entries.items():
        place, end = _extent(name, entry, layout[name])
        if end - place.begin != place.length * place.dtype.itemsize:
            raise ValueError(f"its array {name} of {place.length} values has {end - place.begin} bytes.")
        found.append((place.begin, end, place))
    found.sort(key=lambda one: one[:2])
    reached = 0
    for begin, end, place in found:
        if begin != reached:
            raise ValueError(f"its array {place.name} begins at byte {begin}; {reached} was expected.")
        reached = end
    if n_bytes is not None and reached != n_bytes:
        raise ValueError(
            f"it has {n_bytes:,} bytes of arrays, but its header tells of {reached:,} (truncated or altered)."
        )
    return [place for _, _, place in found]


def _extent(name: str, entry: Any, kind: ArrayKind) -> tuple[ArrayPlace, int]:
    """Return an array of a file, and where it ends."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"its array {name} is malformed.")
    dtype = next((one for one in kind.dtypes if _CODES[one] == entry["dtype"]), None)
    if dtype is None:
        allowed = " or ".join(_CODES[one] for one in kind.dtypes)
        raise ValueError(f"its array {name} is of {entry['dtype']!r:.80}; {allowed} belongs there.")
    for values, expected in ((entry["shape"], kind.ndim), (entry["data_offsets"], 2)):
        if (
            not isinstance(values, list)
            or len(values) != expected
            or any(type(value) is not int or not 0 <= value < 2**63 for value in values)
        ):
            count = "one number" if kind.ndim == 1 else f"{kind.ndim} numbers"
            raise ValueError(f"its array {name} has no shape of {count}, or no place in the file.")
    begin, end = entry["data_offsets"]
    return ArrayPlace(name, dtype, tuple(entry["shape"]), begin), end
