"""What features count for, in all or for each output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polyleaf.explain.clustering import clustered
from polyleaf.params.rules import Boolean, Integer
from polyleaf.plots.bars import draw_bars
from polyleaf.plots.canvas import check_axes
from polyleaf.plots.heat_map import draw_heat_map
from polyleaf.plots.labels import number
from polyleaf.plots.leading import leading, say_how_many
from polyleaf.plots.models import names_of
from polyleaf.plots.palette import CATEGORICAL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MEANING = {"gain": "gain of the splits", "cover": "weight of the rows split", "split": "number of splits"}


def plot_importance(
    model: Any, kind: str = "gain", per_output: bool = False, top: int = 20, *, ax: Axes | None = None
) -> Axes:
    """Draw how much the trees use the features, the most important one on top.

    Parameters
    ----------
    model : estimator
        A fitted one.
    kind : {"gain", "cover", "split"}, default="gain"
        What importance is, as in `get_importance`.
    per_output : bool, default=False
        Whether to tell the outputs apart: a heat map, in which outputs that use the same features are
        neighbours.
    top : int, default=20
        How many features to draw at most; those that no split asks for are left out.
    ax : Axes, default=None
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        With a bar for each feature, or an image of features x outputs.

    Raises
    ------
    ValueError
        For another kind, or when the outputs' shares of the gain are not known (see `get_importance`).
    """
    check_axes(ax)
    names = names_of(model)
    Boolean().check("per_output", per_output)
    Integer(1).check("top", top)
    values = np.asarray(model.get_importance(kind, per_output), dtype=np.float64)
    sums = values.sum(axis=1) if per_output else values
    first = leading(sums, int(top))
    features = [names.features[j] for j in first.tolist()]
    meaning = _MEANING.get(kind, kind)
    if per_output:
        across = clustered(values[first].T)
        outputs = [names.outputs[k] for k in across.tolist()]
        axes = draw_heat_map(ax, values[np.ix_(first, across)], features, outputs, meaning)
    else:
        written = [number(value) for value in values[first].tolist()]
        axes = draw_bars(ax, values[first], features, written, [CATEGORICAL[0]] * len(first), meaning)
    say_how_many(axes, len(first), len(values))
    return axes
