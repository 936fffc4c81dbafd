"""Numbers of features as horizontal bars, the first one on top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.plots.canvas import FONT_SIZE, axes_to_draw_on
from polyleaf.plots.labels import short_names, write_names
from polyleaf.plots.palette import FAINT_INK, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT = 0.24  # of a bar with its gap, in inches
_HIGHEST = 12.0


def draw_bars(
    ax: Any,
    values: FloatArray,
    names: Sequence[object],
    written: Sequence[str],
    colours: Sequence[str],
    meaning: str,
) -> Axes:
    """Draw a bar for each value, with its number beside it.

    Parameters
    ----------
    ax : Axes or None
        Where to; None: a new figure.
    values : float64 ndarray of shape (bars,)
        Below 0 they go to the left.
    names, written : sequence
        What stands at the axis, and at the end of each bar.
    colours : sequence of str
        Of the bars.
    meaning : str
        What the numbers are.
    """
    axes = axes_to_draw_on(ax, 6.4, min(_HIGHEST, 1.1 + _HEIGHT * max(len(values), 3)))
    places = np.arange(len(values))
    bars = axes.barh(places, values, color=list(colours), height=0.75)
    axes.set_ylim(len(values) - 0.4, -0.6)
    axes.bar_label(bars, list(written), padding=2, fontsize=FONT_SIZE - 1, color=INK)
    low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    room = 0.16 * (high - low) or 1.0  # for the numbers
    axes.set_xlim(low - room if low < 0 else 0.0, high + room)
    axes.axvline(0.0, color=FAINT_INK, linewidth=0.8)
    axes.set_xlabel(meaning, fontsize=FONT_SIZE)
    axes.tick_params(axis="x", labelsize=FONT_SIZE)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    write_names(axes, y=short_names(names, 32))
    axes.tick_params(axis="y", length=0)
    return axes
