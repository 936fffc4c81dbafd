"""Names beside a picture: short, on one line, told apart, and never one over the other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polyleaf.plots.canvas import CHARACTER_INCHES, FONT_SIZE, LINE_INCHES, laid_out_inches

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST = 24
# Characters that a font may lack, or that would break the line.
_BLANK = str.maketrans(dict.fromkeys((*range(32), 127), " "))


def short(name: object, most: int = _MOST) -> str:
    """Return a name of at most so many characters: its beginning and its end, where it has more."""
    text = " ".join(str(name).translate(_BLANK).split())
    if len(text) <= most:
        return text
    head = (most - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}"


def short_names(names: Sequence[object], most: int = _MOST) -> list[str]:
    """Return short names; those that would be the same have their number beside them."""
    found = [short(name, most) for name in names]
    how_often = Counter(found)
    return [
        f"{short(name, most - len(mark))}{mark}" if how_often[name] > 1 else name
        for number, name in enumerate(found)
        for mark in [f" #{number}"]
    ]


def write_names(axes: Axes, *, x: Sequence[str] | None = None, y: Sequence[str] | None = None) -> None:
    """Write names at 0, 1, 2, ... along the axes; every second, third, ... one where all do not fit."""
    _write(axes, x, y)
    width, height = laid_out_inches(axes)
    x_unit = width / abs(float(np.diff(axes.get_xlim())[0]))
    y_unit = height / abs(float(np.diff(axes.get_ylim())[0]))
    upright = x is not None and max(map(len, x), default=0) * CHARACTER_INCHES < x_unit
    _write(axes, x, y, 1 if upright else _every(x_unit), _every(y_unit), 0 if upright else 90)


def _write(
    axes: Axes,
    x: Sequence[str] | None,
    y: Sequence[str] | None,
    every_x: int = 1,
    every_y: int = 1,
    rotation: int = 90,
) -> None:
    look: dict[str, Any] = {"fontsize": FONT_SIZE, "parse_math": False}
    if x is not None:
        axes.set_xticks(range(0, len(x), every_x), x[::every_x], rotation=rotation, **look)
        axes.tick_params(axis="x", length=0 if every_x == 1 else 2)
    if y is not None:
        axes.set_yticks(range(0, len(y), every_y), y[::every_y], **look)
        axes.tick_params(axis="y", length=0 if every_y == 1 else 2)


def _every(inches: float) -> int:
    """Return that each so-many-th line fits, where lines are so far apart."""
    return max(1, math.ceil(LINE_INCHES / max(inches, 1e-9)))


def number(value: float) -> str:
    """Return a number as people write it, in four digits where it is not a large one."""
    return (f"{value:.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}").replace("-", "\N{MINUS SIGN}")


def signed(value: float) -> str:
    """Return a number with its sign, in three digits at most."""
    return "0" if value == 0 else f"{value:+.3g}".replace("-", "\N{MINUS SIGN}")
