"""A table of numbers as colours: features down, outputs across."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.plots.canvas import FONT_SIZE, axes_to_draw_on
from polyleaf.plots.colour_bar import draw_colours
from polyleaf.plots.labels import short_names, write_names
from polyleaf.plots.palette import ink_on

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CELL_WIDTH, _CELL_HEIGHT = 0.3, 0.22  # inches
_WIDEST, _HIGHEST = 11.0, 10.0
_WIDE_CELL = 0.5  # with a number in it


def draw_heat_map(
    ax: Any,
    values: FloatArray,
    rows: Sequence[object],
    columns: Sequence[object],
    meaning: str,
    written: Sequence[Sequence[str]] | None = None,
    *,
    about_zero: bool = False,
) -> Axes:
    """Draw values of shape (rows, columns) with a colour bar.

    Parameters
    ----------
    ax : Axes or None
        Where to; None: a new figure.
    values : float64 ndarray of shape (rows, columns)
        NaN is grey.
    rows, columns : sequence
        Their names.
    meaning : str
        What the numbers are.
    written : sequence of sequences of str, default=None
        What to write into the cells.
    about_zero : bool, default=False
        Whether 0 is in the middle of the colours, also where no value is below it.
    """
    cell = _CELL_WIDTH if written is None else _WIDE_CELL
    width = min(_WIDEST, max(3.2 + cell * len(columns), 5.0))
    height = min(_HIGHEST, max(1.8 + _CELL_HEIGHT * len(rows), 2.6))
    axes = axes_to_draw_on(ax, width, height)
    image = draw_colours(axes, values, meaning, about_zero=about_zero, pad=0.02)
    for side in axes.spines.values():
        side.set_visible(False)
    write_names(axes, x=short_names(columns), y=short_names(rows, 32))
    if written is not None:
        look: dict[str, Any] = {"fontsize": FONT_SIZE - 1, "ha": "center", "va": "center"}
        for (row, column), value in np.ndenumerate(values):
            ink = ink_on(image.cmap(image.norm(value)))
            axes.text(column, row, written[row][column], color=ink, parse_math=False, **look)
    return axes
