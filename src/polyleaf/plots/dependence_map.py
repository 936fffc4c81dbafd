"""What an output does as two features change: a map for each output."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.explain.partial_dependence import PartialDependence
from polyleaf.plots.canvas import FONT_SIZE, axes_to_draw_on
from polyleaf.plots.colour_bar import add_colour_bar
from polyleaf.plots.labels import number, short, short_names, write_names
from polyleaf.plots.palette import POINTS, value_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_ACROSS = 3
_WIDTH, _HEIGHT = 3.9, 3.2  # of one of several maps, in inches
_TICKS = 5


def draw_maps(
    ax: Any,
    found: PartialDependence,
    values: FloatArray,
    outputs: Sequence[str],
    meaning: str,
    n_outputs: int,
    *,
    about_zero: bool,
) -> Any:
    """Draw values of shape (outputs, values of the first feature, of the second): the first across.

    Parameters
    ----------
    ax : Axes or None
        Where to, with one output; None: a new figure.
    found : PartialDependence
        The grids and the names of the features.
    values : float64 ndarray
        What to draw.
    outputs : sequence of str
        What the outputs are called.
    meaning : str
        What the numbers are.
    n_outputs : int
        How many outputs there were to choose from.
    about_zero : bool
        Whether 0 is in the middle of the colours.

    Returns
    -------
    Axes, or ndarray of Axes
        The latter with several outputs.
    """
    if len(outputs) == 1:
        axes = axes_to_draw_on(ax, 5.6, 4.4)
        _draw_map(axes, found, values[0], outputs[0], meaning, about_zero)
        return axes
    across = min(_MOST_ACROSS, len(outputs))
    down = math.ceil(len(outputs) / across)
    pyplot = import_module("matplotlib.pyplot")
    size = (_WIDTH * across, _HEIGHT * down)
    figure, panels = pyplot.subplots(down, across, figsize=size, layout="constrained", squeeze=False)
    flat = panels.ravel()
    for panel in flat[len(outputs) :]:
        panel.set_visible(False)
    for panel, one, output in zip(flat, values, outputs, strict=False):
        _draw_map(panel, found, one, output, meaning, about_zero)
    if len(outputs) < n_outputs:
        figure.suptitle(f"{len(outputs)} of {n_outputs} outputs", fontsize=10)
    return flat[: len(outputs)]


def _draw_map(
    axes: Axes, found: PartialDependence, values: FloatArray, output: str, meaning: str, about_zero: bool
) -> None:
    limits = value_range(values, about_zero=True) if about_zero else {"cmap": POINTS}
    image = axes.imshow(values.T, aspect="auto", interpolation="nearest", origin="lower", **limits)
    add_colour_bar(axes, image, meaning, pad=0.02)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_title(short(output, 32), fontsize=10, parse_math=False)
    look: dict[str, Any] = {"fontsize": FONT_SIZE, "parse_math": False}
    axes.set_xlabel(short(found.features[0], 40), **look)
    axes.set_ylabel(short(found.features[1], 32), **look)
    x_grid, y_grid = found.grid_values
    write_names(axes, x=_names(x_grid), y=_names(y_grid))
    for axis, grid in ((axes.xaxis, x_grid), (axes.yaxis, y_grid)):
        if _is_scale(grid):
            places, labels = _ticks(grid)
            axis.set_ticks(places, labels=labels, rotation=0, fontsize=FONT_SIZE)


def _names(grid: Array) -> list[str] | None:
    """Return a name for each value of a grid; None where a few ticks say more."""
    if _is_scale(grid):
        return None
    if grid.dtype == object:
        return short_names(["missing" if value is None else value for value in grid.tolist()], 16)
    return ["missing" if np.isnan(value) else number(value) for value in grid.tolist()]


def _is_scale(grid: Array) -> bool:
    """Whether a grid has more than a few numbers, which ascend."""
    if grid.dtype == object:
        return False
    numbers = grid[~np.isnan(grid)]
    return len(numbers) > _TICKS and bool((np.diff(grid[: len(numbers)]) > 0).all())


def _ticks(grid: FloatArray) -> tuple[list[float], list[str]]:
    """Return places among the cells, and round numbers for them; that of a missing value is the last."""
    numbers = grid[~np.isnan(grid)]
    locator = import_module("matplotlib.ticker").MaxNLocator(_TICKS)
    round_ones = [
        one for one in locator.tick_values(numbers[0], numbers[-1]) if numbers[0] <= one <= numbers[-1]
    ]
    places = np.interp(round_ones, numbers, np.arange(len(numbers))).tolist()
    labels = [number(one) for one in round_ones]
    if len(numbers) < len(grid):
        near = len(grid) / 8  # too near to be written beside it
        kept = [one for one in range(len(places)) if places[one] < len(grid) - 1 - near]
        places, labels = [places[one] for one in kept], [labels[one] for one in kept]
        places, labels = [*places, len(grid) - 1.0], [*labels, "missing"]
    return places, labels
