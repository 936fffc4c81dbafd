"""Data within a page: JSON that no name can break out of, in few digits; columns of points in bytes."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np

from polyleaf.data.inputs import FloatArray

_DIGITS = 5
_STEPS = 254  # of coded numbers; the byte 255 is a gap
# What ends a script, begins a comment or, to some readers, a line.
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def as_json(value: Any) -> str:
    """Return plain data as JSON for a script element of a page; numbers have five digits, NaN is null."""
    text = json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    # A lone surrogate, which a name may have, cannot be written as UTF-8.
    return text.encode("utf-8", "replace").decode("utf-8")


def plain(value: Any) -> Any:
    """Return data as JSON can hold it: arrays are lists, floats have few digits, and whole ones are ints."""
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return _rounded(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def coded(values: FloatArray) -> dict[str, Any]:
    """Return numbers as bytes in base64: where each is between the smallest and the largest; 255 is NaN."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) > 0 else (0.0, 0.0)
    # Halved, so that no range overflows.
    span = (high / 2 - low / 2) or 1.0
    steps = np.round((values / 2 - low / 2) / span * _STEPS)
    codes = np.where(np.isfinite(values), steps, 255).astype(np.uint8)
    return {"low": low, "high": high, "bytes": base64.b64encode(codes.tobytes()).decode("ascii")}


def _rounded(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{_DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
