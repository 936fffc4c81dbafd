"""Training curves: a metric of the evaluation sets after each round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polyleaf.params.wording import shown, some_of
from polyleaf.plots.canvas import FONT_SIZE, axes_to_draw_on, check_axes
from polyleaf.plots.labels import short, short_names
from polyleaf.plots.palette import FAINT_INK, line_look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Curves = Mapping[str, Mapping[str, Sequence[float]]]


def plot_metric(
    model: Any, metric: str | None = None, sets: str | Sequence[str] | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draw a metric of the evaluation sets after each round, and mark the best round.

    Parameters
    ----------
    model : estimator or dict
        An estimator that was fitted with `eval_set`, or its `evals_result_`, which has no best round to mark.
    metric : str, default=None
        Which metric; None: the last one, by which early stopping judges.
    sets : str or list of str, default=None
        Names of the evaluation sets, in the order in which they are drawn; None: all.
    ax : Axes, default=None
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        With a line for each set. Rounds are counted from 0, as `best_iteration_` counts them.

    Raises
    ------
    ValueError
        When there is no evaluation set, or not this set or metric.
    """
    check_axes(ax)
    curves, bests = _curves_of(model)
    wanted = _wanted_sets(curves, sets)
    known = list(dict.fromkeys(name for one in wanted for name in curves[one]))
    if metric is not None and metric not in known:
        raise ValueError(f"metric: there is no metric {shown(metric):.80}; there are {some_of(known)}.")
    name = known[-1] if metric is None else metric
    drawn = [one for one in wanted if len(curves[one].get(name, ())) > 0]
    if not drawn:
        raise ValueError(f"metric: {shown(name)} has no value of any round.")

    axes = axes_to_draw_on(ax, 6.4, 4.0)
    lines, labels = [], short_names(drawn)
    common = {bests[one] for one in drawn if one in bests}  # members of a bagged model have their own
    for number, one in enumerate(drawn):
        values = np.asarray(curves[one][name], dtype=np.float64)
        look = line_look(number)
        lines += axes.plot(np.arange(len(values)), values, linewidth=1.6, **look)
        best = bests.get(one)
        if best is not None and best < len(values):
            axes.plot([best], [values[best]], marker="o", markersize=5, color=look["color"])
            labels[number] += f": {values[best]:.4g}" + (f" (round {best})" if len(common) > 1 else "")
    title = None
    if len(common) == 1:
        [best] = common
        axes.axvline(best, color=FAINT_INK, linewidth=1, linestyle=(0, (2, 2)), zorder=0)
        title = f"best round: {best}"
    # With lines given, labels that begin with "_" are shown, too.
    legend = axes.legend(lines, labels, title=title, fontsize=FONT_SIZE)
    legend.get_title().set_fontsize(FONT_SIZE)
    for text in legend.get_texts():
        text.set_parse_math(False)
    axes.set_xlabel("round", fontsize=FONT_SIZE)
    axes.set_ylabel(short(name, 40), fontsize=FONT_SIZE, parse_math=False)
    axes.tick_params(labelsize=FONT_SIZE)
    axes.locator_params(axis="x", integer=True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes


def _curves_of(model: Any) -> tuple[Curves, dict[str, int]]:
    """Return the metrics by set, and the best rounds of sets where they are known."""
    if isinstance(model, Mapping):
        if not all(isinstance(of_set, Mapping) for of_set in model.values()):
            raise TypeError(
                "model must be like evals_result_: a dict of sets, each a dict of metrics to values."
            )
        curves, bests = model, {}
    elif hasattr(model, "_check_is_fitted"):
        model._check_is_fitted()
        curves, bests = model.evals_result_, model._fitted().best_rounds
    else:
        raise TypeError(f"model must be an estimator or its evals_result_; got {type(model).__name__}.")
    if not any(curves.values()):
        raise ValueError("there is nothing to draw: the model was fitted without eval_set.")
    return curves, bests


def _wanted_sets(curves: Curves, sets: str | Sequence[str] | None) -> list[str]:
    wanted = list(curves) if sets is None else [sets] if isinstance(sets, str) else list(sets)
    for one in wanted:
        if one not in curves:
            raise ValueError(f"sets: there is no set {shown(one):.80}; there are {some_of(list(curves))}.")
    if not wanted:
        raise ValueError("sets is empty; leave it out for all sets.")
    if len(set(wanted)) < len(wanted):
        raise ValueError("sets names a set twice.")
    return wanted
