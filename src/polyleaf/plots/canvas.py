"""Where a picture is drawn: axes of the caller, or those of a new figure."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Of all text but titles, in points; and what a line and a character of it take, in inches.
FONT_SIZE = 8
LINE_INCHES = 0.16
CHARACTER_INCHES = 0.09


def need_matplotlib() -> None:
    """Check that pictures can be drawn.

    Raises
    ------
    ImportError
        When matplotlib is not installed.
    """
    try:
        import_module("matplotlib")
    except ImportError as error:
        raise ImportError(
            'pictures are drawn by matplotlib, which is not installed: pip install "polyleaf[plot]".'
        ) from error


def check_axes(ax: object) -> None:
    """Check what a caller gave to draw on, and that pictures can be drawn, before any work is done.

    Raises
    ------
    TypeError
        For anything but Axes.
    """
    need_matplotlib()
    if ax is not None and not isinstance(ax, import_module("matplotlib.axes").Axes):
        raise TypeError(f"ax must be Axes of matplotlib, or None for a new figure; got {ax!r:.80}.")


def axes_to_draw_on(ax: Any, width: float, height: float) -> Axes:
    """Return the axes of the caller, or those of a new figure of this size in inches."""
    axes: Axes = ax
    if ax is None:
        pyplot = import_module("matplotlib.pyplot")
        axes = pyplot.subplots(figsize=(width, height), layout="constrained")[1]
    return axes


def laid_out_inches(axes: Axes) -> tuple[float, float]:
    """Return width and height of the axes in inches, once room was made for all that is written around."""
    figure: Any = axes.get_figure(root=True)
    figure.draw_without_rendering()
    box = axes.get_window_extent()
    return box.width / figure.dpi, box.height / figure.dpi
