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

_MEANING = {
    "gain": "gain of the splits",
    "cover": "weight of the rows split",
    "split": "number of splits",
    "permutation": "what the score loses by shuffling",
    "shap": "mean of |SHAP|: how far the raw scores are moved",
}


def plot_importance(
    model: Any,
    kind: str = "gain",
    per_output: bool = False,
    top: int = 20,
    *,
    X: Any = None,
    y: Any = None,
    sample_weight: Any = None,
    scoring: Any = None,
    n_repeats: int = 5,
    random_state: int | np.random.RandomState | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how much features count for, the most important one on top.

    Parameters
    ----------
    model : estimator
        A fitted one.
    kind : {"gain", "cover", "split", "permutation", "shap"}, default="gain"
        What importance is, as in `importance`: sums over the splits, what the score on `X` and `y` loses when
        a feature is shuffled, or how far it moves the raw scores of the rows of `X`.
    per_output : bool, default=False
        Whether to tell the outputs apart: a heat map, in which outputs that use the same features are
        neighbours.
    top : int, default=20
        How many features to draw at most; those that no split asks for are left out.
    X, y, sample_weight, scoring, n_repeats, random_state
        As in `importance`, for the kinds that take rows.
    ax : Axes, default=None
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        With a bar for each feature, or an image of features x outputs. What shuffling costs has its standard
        deviation over the repeats beside it.

    Raises
    ------
    ValueError
        For another kind, or when the outputs' shares of the gain are not known (see `get_importance`).
    TypeError
        When the kind needs rows, or takes none.
    """
    check_axes(ax)
    names = names_of(model)
    Boolean().check("per_output", per_output)
    Integer(1).check("top", top)
    found = model._importances(
        kind,
        per_output,
        X=X,
        y=y,
        sample_weight=sample_weight,
        scoring=scoring,
        n_repeats=n_repeats,
        random_state=random_state,
    )
    values = found.mean(axis=1)
    sums = values.sum(axis=1)
    first = leading(sums, int(top))
    features = [names.features[j] for j in first.tolist()]
    meaning = _MEANING.get(kind, kind)
    if per_output:
        across = clustered(values[first].T)
        outputs = [names.outputs[k] for k in across.tolist()]
        axes = draw_heat_map(ax, values[np.ix_(first, across)], features, outputs, meaning)
    else:
        written = [number(value) for value in sums[first].tolist()]
        if kind == "permutation":
            deviations = found.std(axis=1)[first, 0].tolist()
            written = [f"{one} ± {number(std)}" for one, std in zip(written, deviations, strict=True)]
        axes = draw_bars(ax, sums[first], features, written, [CATEGORICAL[0]] * len(first), meaning)
    say_how_many(axes, len(first), len(values))
    return axes
