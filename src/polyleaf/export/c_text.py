"""Names and numbers as C holds them: no name ends a comment, and no number loses a bit."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.category_values import Category

# What can mean something to a preprocessor is not among these: ends of comments, backslashes, trigraphs.
_NOT_PLAIN = re.compile(r"[^ !#$%&'()+,\-.0-9:;<=>@A-Z\[\]^_`a-z{|}~]")
_LINE = 100
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,40}")


def checked_prefix(prefix: object) -> str:
    """Return what names in C begin with, or raise."""
    if not isinstance(prefix, str):
        raise TypeError(f"prefix must be str; got {prefix!r:.80} of type {type(prefix).__name__}.")
    if _IDENTIFIER.fullmatch(prefix) is None:
        raise ValueError(
            "prefix must begin with a letter and go on with letters, digits and _, all of ASCII and at most "
            f"41 in all; got {prefix!r:.80}."
        )
    return prefix


def quoted(name: str) -> str:
    """Return text as a string of JSON that can stand in any comment of C and C++."""

    def escaped(found: re.Match[str]) -> str:
        units = found[0].encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))

    return '"' + _NOT_PLAIN.sub(escaped, name) + '"'


def category_text(value: Category) -> str:
    """Return a category as JSON that can stand in a comment."""
    return quoted(value) if isinstance(value, str) else json.dumps(value)


def comment(lines: Iterable[str]) -> str:
    """Return lines as one comment; they hold nothing that would end it."""
    first, *others = lines
    return "\n".join([f"/* {first}", *(f" * {line}".rstrip() for line in others), " */"]) + "\n"


def double_text(value: float) -> str:
    """Return a float64, which is no NaN, with the digits that tell it from all others."""
    if math.isinf(value):
        return "HUGE_VAL" if value > 0 else "-HUGE_VAL"
    return repr(float(value))


def double_items(values: npt.NDArray[np.float64]) -> list[str]:
    """Return each of many float64."""
    return list(map(double_text, values.tolist()))


def float_items(values: npt.NDArray[np.float32]) -> list[str]:
    """Return each of many finite float32; nine digits tell them apart."""
    texts = map("%.9g".__mod__, values.tolist())
    return [text + "f" if "." in text or "e" in text else text + ".0f" for text in texts]


def unsigned_items(values: npt.NDArray[np.integer[Any]]) -> list[str]:
    """Return each of many integers >= 0."""
    return [f"{value}u" for value in values.tolist()]


def array_text(declaration: str, items: Sequence[str]) -> str:
    """Return the definition of an array that nobody else sees; C has none without items."""
    lines: list[str] = []
    of_line: list[str] = []
    length = 2
    for item in items:
        if of_line and length + len(item) + 1 > _LINE:
            lines.append("  " + ",".join(of_line))
            of_line, length = [], 2
        of_line.append(item)
        length += len(item) + 1
    lines.append("  " + ",".join(of_line))
    return f"static const {declaration}[{len(items)}] = {{\n" + ",\n".join(lines) + "\n};\n"
