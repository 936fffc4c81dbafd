"""Which features move which outputs: mean absolute Shapley values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polyleaf.explain.clustering import clustered
from polyleaf.explain.outputs import chosen_outputs
from polyleaf.params.rules import Boolean, Integer
from polyleaf.plots.canvas import check_axes
from polyleaf.plots.heat_map import draw_heat_map
from polyleaf.plots.leading import leading, say_how_many
from polyleaf.plots.models import names_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_shap_heatmap(
    model: Any,
    X: Any,
    outputs: Any = None,
    top: int = 30,
    *,
    normalize: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean of |SHAP| over the rows, of features x outputs; those that are alike are neighbours.

    Parameters
    ----------
    model : estimator
        A fitted one.
    X : array-like, data frame, sparse matrix, source or BinnedTable
        The rows to explain, as in `shap_values`.
    outputs : int, str, or sequence of these, default=None
        Which outputs, by number or by name; None: all.
    top : int, default=30
        How many features to draw at most; those of the largest sum over the outputs, none that adds nothing.
    normalize : bool, default=False
        Whether to divide by the sum over all features, for each output: for outputs of different scale.
    ax : Axes, default=None
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        With an image of features x outputs.

    Raises
    ------
    ValueError
        As `shap_values` does: `X` has another width or no row, an output does not exist.
    """
    check_axes(ax)
    names = names_of(model)
    Integer(1).check("top", top)
    Boolean().check("normalize", normalize)
    chosen = chosen_outputs(outputs, names.outputs)
    values = np.asarray(model.shap_values(X, chosen, reduce="mean_abs"), dtype=np.float64)
    values = values.reshape(len(names.features), len(chosen))
    meaning = "mean |SHAP|"
    if normalize:
        sums = values.sum(axis=0)
        values = np.divide(values, sums, out=np.zeros_like(values), where=sums > 0)
        meaning = "share of mean |SHAP|"
    first = leading(values.sum(axis=1), int(top))
    down = first[clustered(values[first])]
    across = clustered(values[first].T)
    axes = draw_heat_map(
        ax,
        values[np.ix_(down, across)],
        [names.features[j] for j in down.tolist()],
        [names.outputs[k] for k in chosen[across].tolist()],
        meaning,
    )
    say_how_many(axes, len(first), len(values))
    return axes
