"""Which outputs go together: correlations of leaf values beside those of residuals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.explain.clustering import clustered
from polyleaf.explain.output_correlations import leaf_correlations, residual_correlations
from polyleaf.explain.outputs import chosen_outputs
from polyleaf.inspect.frames import refuse_too_large
from polyleaf.inspect.observed_outputs import observed_outputs
from polyleaf.params.combinations import check
from polyleaf.params.rules import Integer
from polyleaf.params.situation import Situation
from polyleaf.plots.canvas import axes_to_draw_on, check_axes
from polyleaf.plots.colour_bar import draw_colours
from polyleaf.plots.labels import short_names, write_names
from polyleaf.plots.leading import leading
from polyleaf.plots.models import names_of, rows_beside_targets
from polyleaf.plots.palette import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CELL, _WIDEST, _HIGHEST = 0.22, 14.0, 8.0  # inches


def plot_output_map(
    model: Any, X: Any, y: Any = None, outputs: Any = None, top: int = 40, *, ax: Axes | None = None
) -> Axes:
    """Draw which outputs the trees treat alike, and beside it which ones they err on alike.

    On the left are the correlations of leaf values, over all leaves by the weight of their training rows: the
    outputs that share splits. On the right are those of the residuals of `X` and `y`: of numbers, what is
    left of them; of classes and labels, 0 or 1 less the probability. What is strong on the right is something
    that the model has not learnt, and that outputs have in common. Both sides have the same order, in which
    outputs that are alike are neighbours.

    Parameters
    ----------
    model : estimator
        A fitted one, whose leaves hold several outputs.
    X : array-like, data frame, sparse matrix, source or BinnedTable
        Rows, best some that the model was not trained on.
    y : array-like, data frame or sparse matrix, default=None
        Their targets, as in `score`. A pair of outputs counts where both were observed.
    outputs : int, str, or sequence of these, default=None
        Which outputs, by number or by name; None: all.
    top : int, default=40
        How many outputs to draw at most: those that correlate most with others.
    ax : Axes, default=None
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        With an image: both matrices side by side. What has no correlation, as it never varies, is grey.

    Raises
    ------
    ValueError
        When there are fewer than two outputs, or a tree has one output (one tree per output).
    MemoryError
        When the correlations of so many outputs take more than there is.
    """
    check_axes(ax)
    names = names_of(model)
    Integer(2).check("top", top)
    chosen = chosen_outputs(outputs, names.outputs)
    if len(chosen) < 2:
        raise ValueError(f"a map of outputs needs at least two; there is {len(chosen)}.")
    strategy = "one_output_per_tree" if names.forest.trees_per_round > 1 else None
    check(Situation({"multi_strategy": strategy}, asked=frozenset({"output map"})))
    n_rows = X.shape[0] if hasattr(X, "shape") else 0
    cells = len(chosen) * (10 * len(chosen) + 4 * n_rows)
    refuse_too_large(8 * cells, f"a map of {len(chosen):,} outputs and {n_rows:,} rows", "choose outputs")
    raw, coded, weight = rows_beside_targets(model, X, y)
    if len(raw) == 0:
        raise ValueError("X has no row to draw.")
    coding = names.model.coding
    places = coding.in_order_of_y(np.arange(len(names.outputs)))[chosen]
    wanted = set(places.tolist())
    rows = {
        place: one
        for place, one in enumerate(observed_outputs(coding, names.model.loss, raw, coded, weight))
        if place in wanted
    }
    leaves = leaf_correlations(names.forest, places)
    residuals = residual_correlations([rows[place] for place in places.tolist()])
    first = np.sort(leading(_strength(leaves) + _strength(residuals), int(top)))
    leaves, residuals = leaves[np.ix_(first, first)], residuals[np.ix_(first, first)]
    order = clustered(np.nan_to_num(np.hstack([leaves, residuals])))
    called = short_names([names.outputs[k] for k in chosen[first][order].tolist()])
    axes = _draw(ax, leaves[np.ix_(order, order)], residuals[np.ix_(order, order)], called)
    if len(first) < len(chosen):
        axes.set_title(f"{len(first)} of {len(chosen)} outputs", fontsize=10, pad=18)
    return axes


def _strength(correlations: FloatArray) -> FloatArray:
    """Return how much each output has in common with others."""
    squares = np.nan_to_num(correlations) ** 2
    strength: FloatArray = squares.sum(axis=1) - np.diag(squares)
    return strength


def _draw(ax: Any, left: FloatArray, right: FloatArray, called: list[str]) -> Axes:
    size = len(called)
    gap = max(1, round(0.05 * size))
    width = min(_WIDEST, 2.6 + _CELL * max(2 * size + gap, 14))
    axes = axes_to_draw_on(ax, width, min(_HIGHEST, 2.0 + _CELL * max(size, 6)))
    between = np.full((size, gap), np.nan)
    draw_colours(axes, np.hstack([left, between, right]), "correlation", about_zero=True, pad=0.02)
    axes.axvspan(size - 0.5, size + gap - 0.5, color="white", zorder=2)
    for side in axes.spines.values():
        side.set_visible(False)
    look: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": 9, "color": INK}
    for first, text in ((0, "leaf values"), (size + gap, "residuals")):
        middle = first + 0.5 * size - 0.5
        axes.text(middle, 1.01, text, transform=axes.get_xaxis_transform(), **look)
    write_names(axes, x=[*called, *[""] * gap, *called], y=called)
    return axes
