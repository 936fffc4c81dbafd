"""The header of a model file: how large it may be, and where it says that the arrays are.

What it says is held against the size of the file before an array is read: a file that is not what it says
costs neither memory nor time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyleaf.model.forest_checks import LAYOUT, OPTIONAL, check_sizes

METADATA_KEY = "polyleaf"
MOST_HEADER_BYTES = 2**25
MOST_HEADER_VALUES = 2_000_000
# What the format calls the types of numbers.
_CODES: dict[type[np.generic], str] = {
    np.float64: "F64",
    np.float32: "F32",
    np.int64: "I64",
    np.int32: "I32",
    np.uint32: "U32",
    np.uint8: "U8",
}


@dataclass(frozen=True)
class ArrayPlace:
    """An array of a file: its name, its dtype and how many values it has."""

    name: str
    dtype: np.dtype[Any]
    length: int


def check_header_size(n_bytes: int) -> None:
    """Raise ValueError for a header that would not be read."""
    if n_bytes > MOST_HEADER_BYTES:
        raise ValueError(
            f"its header has {n_bytes:,} bytes; at most {MOST_HEADER_BYTES:,} are allowed for names, "
            "classes, categories and the history of metrics."
        )


def read_header(header: bytes) -> dict[str, Any]:
    """Return the JSON of a header.

    Raises
    ------
    ValueError
        When it is none, or holds more values than are allowed.
    """
    _check_values(header.count(b",") + header.count(b"[") + header.count(b"{"))
    try:
        outer = json.loads(header)
    except (ValueError, RecursionError):
        raise ValueError("it is damaged, or not a model at all.") from None
    if not isinstance(outer, dict):
        raise ValueError("it is a safetensors file, but not a polyleaf model.")
    return outer


def page_text(outer: Mapping[str, Any]) -> str:
    """Return the text of the page in a header."""
    metadata = outer.get("__metadata__")
    text = metadata.get(METADATA_KEY) if isinstance(metadata, dict) else None
    if not isinstance(text, str):
        raise ValueError("it is a safetensors file, but not a polyleaf model.")
    _check_values(text.count(",") + text.count("[") + text.count("{"))  # here without escapes
    return text


def _check_values(n_values: int) -> None:
    """Every value of a JSON text but the first comes after a comma or a bracket, or with a key that does."""
    if n_values > MOST_HEADER_VALUES:
        raise ValueError(
            f"its header holds about {n_values:,} values; at most {MOST_HEADER_VALUES:,} are allowed for "
            "names, classes, categories and the history of metrics."
        )


def array_places(outer: Mapping[str, Any], n_outputs: int, n_bytes: int) -> list[ArrayPlace]:
    """Return the arrays of a file in the order in which they stand there.

    Parameters
    ----------
    outer : mapping
        What `read_header` returned.
    n_outputs : int
        As the page has it.
    n_bytes : int
        What the file holds after the header.

    Raises
    ------
    ValueError
        When they are not those of a forest, or would not fill the file exactly.
    """
    layout = LAYOUT | OPTIONAL
    entries = {name: entry for name, entry in outer.items() if name != "__metadata__"}
    unknown = [name for name in entries if name not in layout]
    if unknown:
        raise ValueError(f"it has an array {unknown[0]!r:.80}, which no model has.")
    found = []
    for name, entry in entries.items():
        dtype = layout[name][0]
        begin, end, length = _extent(name, entry, _CODES[dtype])
        if end - begin != length * np.dtype(dtype).itemsize:
            raise ValueError(f"its array {name} of {length} values has {end - begin} bytes.")
        found.append((begin, end, ArrayPlace(name, np.dtype(dtype), length)))
    found.sort(key=lambda one: one[:2])
    reached = 0
    for begin, end, place in found:
        if begin != reached:
            raise ValueError(f"its array {place.name} begins at byte {begin}; {reached} was expected.")
        reached = end
    if reached != n_bytes:
        raise ValueError(
            f"it has {n_bytes:,} bytes of arrays, but its header tells of {reached:,} (truncated or altered)."
        )
    check_sizes({place.name: place.length for _, _, place in found}, n_outputs)
    return [place for _, _, place in found]


def _extent(name: str, entry: Any, code: str) -> tuple[int, int, int]:
    """Return where an array begins and ends, and how many values it has."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"its array {name} is malformed.")
    if entry["dtype"] != code:
        raise ValueError(f"its array {name} is of {entry['dtype']!r:.80}; {code} belongs there.")
    numbers = [entry["shape"], entry["data_offsets"]]
    for values, expected in zip(numbers, (1, 2), strict=True):
        if (
            not isinstance(values, list)
            or len(values) != expected
            or any(type(value) is not int or not 0 <= value < 2**63 for value in values)
        ):
            raise ValueError(f"its array {name} has no shape of one number, or no place in the file.")
    (length,), (begin, end) = numbers
    return begin, end, length
