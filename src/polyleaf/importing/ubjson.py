"""Universal Binary JSON, as XGBoost writes it: read without believing any of its lengths.

A value is a byte that says its type, and what the type needs. Lengths are held against the bytes that are
left before anything is made of them, and containers may not lie deeper in each other than `MOST_DEPTH`.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

MOST_DEPTH = 32
_INTEGERS = {b"i": ">b", b"U": ">B", b"I": ">h", b"l": ">i", b"L": ">q"}
_FLOATS = {b"d": ">f", b"D": ">d"}
_STRUCTS = {marker: struct.Struct(form) for marker, form in (_INTEGERS | _FLOATS).items()}
_DTYPES = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
_CONSTANTS: dict[bytes, bool | None] = {b"T": True, b"F": False, b"Z": None}


def read_ubjson(content: bytes) -> Any:
    """Return what a document holds: dict, list, str, int, float, bool, None; arrays of one type as ndarray.

    Raises
    ------
    ValueError
        When it is cut, goes on after its end, is too deep, has a key twice, or is no such document at all.
    """
    reader = _Reader(content)
    value = reader.value(reader.take(1), 0)
    if reader.place != len(content):
        raise ValueError(f"it goes on after its end, at byte {reader.place:,}.")
    return value


class _Reader:
    """A document, and the place up to which it was read."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.place = 0

    @property
    def _left(self) -> int:
        return len(self._content) - self.place

    def take(self, n_bytes: int) -> bytes:
        """Return the next bytes."""
        if not 0 <= n_bytes <= self._left:
            raise ValueError(f"it is cut, or damaged, at byte {self.place:,}: {n_bytes:,} more belong there.")
        part = self._content[self.place : self.place + n_bytes]
        self.place += n_bytes
        return part

    def value(self, marker: bytes, depth: int) -> Any:
        """Return the value that follows a marker."""
        if marker in _STRUCTS:
            return self._number(marker)
        if marker == b"S":
            return self._text()
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        if marker not in (b"[", b"{"):
            raise ValueError(f"it has a value of the unknown type {marker!r} before byte {self.place:,}.")
        if depth == MOST_DEPTH:
            raise ValueError(f"its values lie in each other more than {MOST_DEPTH} deep.")
        return self._array(depth + 1) if marker == b"[" else self._object(depth + 1)

    def _number(self, marker: bytes) -> Any:
        form = _STRUCTS[marker]
        return form.unpack(self.take(form.size))[0]

    def _length(self) -> int:
        marker = self.take(1)
        if marker not in _INTEGERS:
            raise ValueError(f"it has a length of type {marker!r} before byte {self.place:,}.")
        length: int = self._number(marker)
        if not 0 <= length <= self._left:  # nothing takes less than a byte
            raise ValueError(
                f"it has a length of {length:,} at byte {self.place:,}, but {self._left:,} bytes are left."
            )
        return length

    def _text(self) -> str:
        try:
            return self.take(self._length()).decode("utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"it has a text that is no UTF-8 before byte {self.place:,}.") from None

    def _array(self, depth: int) -> Any:
        marker = self.take(1)
        if marker == b"$":
            return self._typed_array()
        if marker == b"#":
            return [self.value(self.take(1), depth) for _ in range(self._length())]
        values = []
        while marker != b"]":
            values.append(self.value(marker, depth))
            marker = self.take(1)
        return values

    def _typed_array(self) -> Any:
        kind = self.take(1)
        if kind not in _DTYPES or self.take(1) != b"#":
            raise ValueError(f"it has an array of type {kind!r}, or of no length, at byte {self.place:,}.")
        dtype = np.dtype(_DTYPES[kind])
        values = np.frombuffer(self.take(self._length() * dtype.itemsize), dtype)
        return values.astype(dtype.newbyteorder("="))

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while (marker := self.take(1)) != b"}":
            self.place -= len(marker)
            key = self._text()
            if key in found:
                raise ValueError(f"it has {key!r:.80} twice.")
            found[key] = self.value(self.take(1), depth)
        return found
