"""What features add to one output, a point for each row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polyleaf.data.binned_table import check_has_values
from polyleaf.data.inputs import FloatArray
from polyleaf.explain.outputs import chosen_outputs
from polyleaf.params.rules import Integer
from polyleaf.plots.canvas import FONT_SIZE, axes_to_draw_on, check_axes
from polyleaf.plots.colour_bar import add_colour_bar
from polyleaf.plots.feature_values import feature_values
from polyleaf.plots.labels import short, short_names, write_names
from polyleaf.plots.leading import leading
from polyleaf.plots.models import names_of
from polyleaf.plots.palette import FAINT_INK, NOTHING, POINTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW_INCHES, _HIGHEST = 0.36, 12.0
_BINS = 120
_HALF_WIDTH = 0.4  # of a swarm; features are 1 apart
_MOST_POINTS = 3000  # of a feature


def plot_shap_beeswarm(
    model: Any, X: Any, output: int | str | None = None, top: int = 20, *, ax: Axes | None = None
) -> Axes:
    """Draw the Shapley values of one output: a point for each row and feature, coloured by its value.

    Features are ordered by the mean of their absolute values over all rows. Of more than 3,000 rows, as many
    at equal distances are drawn.

    Parameters
    ----------
    model : estimator
        A fitted one.
    X : array-like, data frame, sparse matrix or source
        The rows to explain, as in `shap_values`.
    output : int or str, default=None
        Which output, by number or by name. It may be left out where the model has one.
    top : int, default=20
        How many features to draw at most.
    ax : Axes, default=None
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        With a swarm of points for each feature. Colours go from the lowest value of a feature to its
        highest, by rank; missing values and categories are grey.

    Raises
    ------
    ValueError
        When the output does not exist, or there is no row.
    """
    check_axes(ax)
    names = names_of(model)
    Integer(1).check("top", top)
    chosen = _one_output(output, names.outputs)
    check_has_values("X", X)
    shap = np.asarray(model.shap_values(X, [chosen])).reshape(-1, len(names.features))
    if len(shap) == 0:
        raise ValueError("X has no row to draw.")
    first = leading(np.abs(shap).mean(axis=0), int(top)).tolist()
    values = feature_values(model, X, first)
    rows = np.unique(np.linspace(0, len(shap) - 1, min(len(shap), _MOST_POINTS)).astype(np.intp))

    axes = axes_to_draw_on(ax, 7.0, min(_HIGHEST, 1.4 + _ROW_INCHES * max(len(first), 3)))
    axes.axvline(0.0, color=FAINT_INK, linewidth=0.8, zorder=0)
    axes.set_ylim(len(first) - 0.5, -0.5)
    look: dict[str, Any] = {"s": 9, "linewidths": 0, "rasterized": True}
    points, any_grey = None, False
    for place, feature in enumerate(first):
        across = shap[rows, feature]
        heights = place + _swarm(across)
        shade = np.full(len(rows), np.nan)
        if feature not in names.model.categories:
            shade = _ranks(values[:, place])[rows]
        grey = np.isnan(shade)
        any_grey |= bool(grey.any())
        axes.scatter(across[grey], heights[grey], color=NOTHING, **look)
        points = axes.scatter(
            across[~grey], heights[~grey], c=shade[~grey], cmap=POINTS, vmin=0, vmax=1, **look
        )
    bar = add_colour_bar(axes, points, "value of the feature", pad=0.02, aspect=40)
    bar.set_ticks([0, 1], labels=["low", "high"])
    axes.set_xlabel("SHAP value: what it adds to the raw score", fontsize=FONT_SIZE)
    axes.tick_params(axis="x", labelsize=FONT_SIZE)
    note = " (grey: missing values, categories)" if any_grey else ""
    axes.set_title(f"{short(names.outputs[chosen], 40)}{note}", fontsize=10, parse_math=False)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    write_names(axes, y=short_names([names.features[j] for j in first]))
    return axes


def _one_output(output: int | str | None, outputs: tuple[str, ...]) -> int:
    if output is None and len(outputs) > 1:
        raise TypeError(f"output is needed: the model has {len(outputs)}, and a swarm is of one.")
    chosen = chosen_outputs(output, outputs)
    if len(chosen) > 1:
        raise TypeError(f"output must be one output; got {len(chosen)}.")
    return int(chosen[0])


def _swarm(values: FloatArray) -> FloatArray:
    """Return heights of points about 0: those of nearly the same value one over the other, by turns."""
    low, high = float(values.min()), float(values.max())
    bins = np.zeros(len(values), dtype=np.intp)
    if high > low:
        bins = np.minimum(((values - low) / (high - low) * _BINS).astype(np.intp), _BINS - 1)
    order = np.argsort(bins, kind="stable")
    counts = np.bincount(bins, minlength=_BINS)
    nth = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    steps = np.empty(len(values))
    steps[order] = np.where(nth % 2 == 1, (nth + 1) // 2, -(nth // 2))
    return steps * min(0.06, _HALF_WIDTH / max(float(np.abs(steps).max()), 1.0))


def _ranks(values: FloatArray) -> FloatArray:
    """Return ranks from 0 to 1, equal ones of equal values; NaN stays."""
    found = np.full(len(values), np.nan)
    there = ~np.isnan(values)
    distinct, place = np.unique(values[there], return_inverse=True)
    found[there] = place / max(len(distinct) - 1, 1)
    return found
