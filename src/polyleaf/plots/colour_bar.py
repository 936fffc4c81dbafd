"""What the colours of a picture stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.plots.canvas import FONT_SIZE
from polyleaf.plots.palette import NOTHING, value_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_colours(
    axes: Axes, values: FloatArray, meaning: str, *, about_zero: bool = False, **place: Any
) -> Any:
    """Draw values of shape (rows, columns) as an image, and beside it the colours that there are.

    Parameters
    ----------
    axes : Axes
        Where to.
    values : float64 ndarray of shape (rows, columns)
        NaN is grey.
    meaning : str
        What the numbers are.
    about_zero : bool, default=False
        Whether 0 is in the middle of the colours, also where no value is below it.
    **place
        Where the colour bar stands, as `Figure.colorbar` takes it.

    Returns
    -------
    AxesImage
        The image.
    """
    image: Any = axes.imshow(
        values, aspect="auto", interpolation="nearest", **value_range(values, about_zero=about_zero)
    )
    image.cmap = image.cmap.with_extremes(bad=NOTHING)
    bar = add_colour_bar(axes, image, meaning, **place)
    if image.norm.vmin < 0:  # about 0, but no longer than the values reach
        reach = 1e-3 * image.norm.vmax
        bar.ax.set_ylim(min(float(np.nanmin(values)), -reach), max(float(np.nanmax(values)), reach))
    return image


def add_colour_bar(axes: Axes, mappable: Any, meaning: str, **place: Any) -> Any:
    """Draw a colour bar beside the axes and return it."""
    figure: Any = axes.get_figure()
    bar = figure.colorbar(mappable, ax=axes, **place)
    bar.set_label(meaning, fontsize=FONT_SIZE)
    bar.ax.tick_params(labelsize=FONT_SIZE)
    bar.outline.set_visible(False)
    return bar
