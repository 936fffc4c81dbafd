"""Colours that people with any colour vision tell apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyleaf.data.inputs import FloatArray

# Okabe and Ito, without black and yellow (too pale for a line).
CATEGORICAL = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
LINE_STYLES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D")
FOR, AGAINST = "#B2182B", "#2166AC"  # the ends of DIVERGING: what adds, and what takes away
SEQUENTIAL = "YlGnBu"
DIVERGING = "RdBu_r"
POINTS = "viridis"
NOTHING = "#BBBBBB"
INK, FAINT_INK = "#222222", "#777777"


def line_look(number: int) -> dict[str, Any]:
    """Return colour and style of a line: colours first, other styles when they have run out."""
    style = LINE_STYLES[number // len(CATEGORICAL) % len(LINE_STYLES)]
    return {"color": CATEGORICAL[number % len(CATEGORICAL)], "linestyle": style}


def value_range(values: FloatArray, *, about_zero: bool) -> dict[str, Any]:
    """Return colour map and limits of values: about 0 if so asked or some are below it, else from 0 on."""
    finite = values[np.isfinite(values)]
    largest = float(np.abs(finite).max(initial=0.0)) or 1.0
    if about_zero or (finite < 0).any():
        return {"cmap": DIVERGING, "vmin": -largest, "vmax": largest}
    return {"cmap": SEQUENTIAL, "vmin": 0.0, "vmax": largest}


def ink_on(colour: Any) -> str:
    """Return dark or white, whichever reads better on a colour (red, green, blue between 0 and 1)."""
    red, green, blue = colour[:3]
    return "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.55 else INK
