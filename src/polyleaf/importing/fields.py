"""Fields of a foreign model, each checked for type, length and range before it is believed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import FloatArray

IntArray = npt.NDArray[np.int64]


class Fields:
    """A mapping from a file; errors name the field, and where it stands.

    Parameters
    ----------
    entries : mapping
        What the file holds there.
    where : str
        What errors call the place, such as "tree 3"; empty: the whole.
    """

    def __init__(self, entries: Any, where: str = "") -> None:
        self.where = where
        if not isinstance(entries, Mapping):
            raise ValueError(f"its {where or 'content'} is no mapping.")
        self._entries = entries

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def _path(self, name: str) -> str:
        return f"{name} of {self.where}" if self.where else name

    def wrong(self, name: str, problem: str) -> ValueError:
        """Return the error of a field."""
        return ValueError(f"its {self._path(name)} {problem}.")

    def raw(self, name: str) -> Any:
        """Return a field as it is."""
        if name not in self._entries:
            raise self.wrong(name, "is missing")
        return self._entries[name]

    def inner(self, name: str) -> Fields:
        """Return the mapping that a field holds."""
        return Fields(self.raw(name), self._path(name))

    def list(self, name: str) -> list[Any]:
        """Return a field that is a list."""
        value = self.raw(name)
        if isinstance(value, np.ndarray):
            return value.tolist()  # type: ignore[no-any-return]
        if not isinstance(value, list):
            raise self.wrong(name, f"is {value!r:.40}, but a list belongs there")
        return value

    def text(self, name: str) -> str:
        """Return a field that is text."""
        value = self.raw(name)
        if not isinstance(value, str):
            raise self.wrong(name, f"is {value!r:.40}, but text belongs there")
        return value

    def whole(self, name: str, least: int, most: int) -> int:
        """Return a whole number within a range; the file may hold it as text."""
        value = self.raw(name)
        if (
            isinstance(value, str)
            and value.isascii()
            and value.removeprefix("-").isdigit()
            and len(value) < 20
        ):
            value = int(value)
        if type(value) is not int or not least <= value <= most:
            raise self.wrong(name, f"is {value!r:.40}; a whole number from {least} to {most:,} belongs there")
        return value

    def integers(self, name: str, length: int | None, least: int, most: int) -> IntArray:
        """Return whole numbers within a range, so many of them (None: any number)."""
        value = self.raw(name)
        if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
            found = value
        elif len(entries := self.list(name)) == 0:
            found = np.empty(0, np.int64)
        elif any(type(one) not in (int, bool) for one in entries):
            raise self.wrong(name, "holds something else than whole numbers")
        elif min(entries) < -(2**63) or max(entries) >= 2**63:
            raise self.wrong(name, "holds a number out of range")
        else:
            found = np.array(entries, dtype=np.int64)
        self._check_length(name, len(found), length)
        if len(found) > 0 and not (least <= int(found.min()) and int(found.max()) <= most):
            raise self.wrong(name, f"holds a number that is not within {least} and {most:,}")
        return found.astype(np.int64)

    def floats(self, name: str, length: int | None, *, for_infinity: float | None = None) -> FloatArray:
        """Return numbers, none of them NaN or infinite; what is infinite may have another in its place."""
        found = self._numbers(name, length)
        if for_infinity is not None:
            found = np.where(found == np.inf, for_infinity, found)
        if not np.isfinite(found).all():
            raise self.wrong(name, "holds a number that is not finite")
        return found

    def gains(self, name: str, length: int) -> FloatArray:
        """Return gains, which are infinite where targets are huge: then the largest float32; NaN counts 0."""
        most = float(np.finfo(np.float32).max)
        found = np.nan_to_num(self._numbers(name, length), posinf=most, neginf=-most)
        return np.clip(found, -most, most)

    def float32s(
        self, name: str, length: int | None, needed: npt.NDArray[np.bool_] | None = None
    ) -> FloatArray:
        """Return numbers that are float32, as float64; what is not needed may be anything, and is 0."""
        found = self._numbers(name, length)
        if needed is not None:
            found = np.where(needed, found, 0.0)
        with np.errstate(over="ignore"):
            single = found.astype(np.float32)
        if not np.isfinite(single).all():
            problem = "that is not finite" if not np.isfinite(found).all() else "beyond float32"
            raise self.wrong(name, f"holds a number {problem}")
        return single.astype(np.float64)

    def _numbers(self, name: str, length: int | None) -> FloatArray:
        value = self.raw(name)
        if isinstance(value, np.ndarray):
            found = value.astype(np.float64)
        else:
            entries = self.list(name)
            if any(type(one) not in (int, float) for one in entries):
                raise self.wrong(name, "holds something else than numbers")
            try:
                found = np.array(entries, dtype=np.float64)
            except OverflowError:
                raise self.wrong(name, "holds a number out of range") from None
        self._check_length(name, len(found), length)
        return found

    def _check_length(self, name: str, found: int, length: int | None) -> None:
        if length is not None and found != length:
            raise self.wrong(name, f"has {found:,} values; {length:,} belong there")


def number_list(text: str, what: str) -> list[float]:
    """Return the finite numbers of a text such as ``[0.1,0.5]``, or ``0.5``."""
    inner = text.strip().removeprefix("[").removesuffix("]")
    try:
        found = [float(part) for part in inner.split(",")]
    except ValueError:
        raise ValueError(f"its {what} is {text!r:.40}, but numbers belong there.") from None
    if not all(map(math.isfinite, found)):
        raise ValueError(f"its {what} is {text!r:.40}, but finite numbers belong there.")
    return found
