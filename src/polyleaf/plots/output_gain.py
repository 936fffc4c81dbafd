"""How well each output is predicted, and what it gains or loses by sharing trees with others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import FloatArray
from polyleaf.data.targets import TargetCoding
from polyleaf.explain.outputs import chosen_outputs
from polyleaf.inspect.named_trees import NamedTrees
from polyleaf.inspect.output_scores import output_scores
from polyleaf.params.rules import Integer
from polyleaf.params.wording import some_of
from polyleaf.plots.bars import draw_bars
from polyleaf.plots.canvas import FONT_SIZE, axes_to_draw_on, check_axes
from polyleaf.plots.labels import number, short_names, signed, write_names
from polyleaf.plots.models import names_of, rows_beside_targets
from polyleaf.plots.palette import CATEGORICAL, FAINT_INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT, _HIGHEST = 0.24, 12.0  # of a line, in inches
_GAIN, _LOSS = CATEGORICAL[0], CATEGORICAL[1]


def plot_output_gain(
    model: Any,
    X: Any,
    y: Any = None,
    separate: Any = None,
    outputs: Any = None,
    top: int = 30,
    *,
    sample_weight: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the score of each output, and what it gains or loses against another model.

    The score is R2 of a number; of the probability of a class or label, R2 against 0 and 1 (the Brier skill
    score); of a quantile, D2, the same with the pinball loss. 1 is best, and 0 what a constant reaches.

    Parameters
    ----------
    model : estimator
        A fitted one.
    X : array-like, data frame, sparse matrix, source or BinnedTable
        Rows that neither model was trained on.
    y : array-like, data frame or sparse matrix, default=None
        Their targets, as in `score`.
    separate : estimator, default=None
        A fitted model of the same outputs to compare with, usually one tree per output:
        ``clone(model).set_params(multi_strategy="one_output_per_tree").fit(X_train, y_train)``. None: scores
        alone.
    outputs : int, str, or sequence of these, default=None
        Which outputs, by number or by name; None: all.
    top : int, default=30
        How many outputs to draw at most: the first and the last ones by gain, or by score.
    sample_weight : array-like, default=None
        Weights of rows or cells, as in `score`.
    ax : Axes, default=None
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        With a bar for each output; or with its two scores, joined by a line, and the gain beside it: blue
        where there is one, orange where there is a loss.

    Raises
    ------
    ValueError
        When the two models do not have the same outputs, or nothing was observed of one.
    """
    check_axes(ax)
    names = names_of(model)
    others = None if separate is None else names_of(separate)
    Integer(1).check("top", top)
    if others is not None and others.outputs != names.outputs:
        raise ValueError(
            f"separate has the outputs {some_of(others.outputs)}, and model has {some_of(names.outputs)}; "
            "they must be the same, in the same order."
        )
    chosen = chosen_outputs(outputs, names.outputs)
    scores = _scores(model, names, X, y, sample_weight)[chosen]
    called = [names.outputs[k] for k in chosen.tolist()]
    meaning = _meaning(names.model.coding)
    if others is None:
        shown = _first_and_last(scores, int(top))
        written = [number(value) for value in scores[shown].tolist()]
        colours = [CATEGORICAL[0]] * len(shown)
        axes = draw_bars(ax, scores[shown], [called[k] for k in shown.tolist()], written, colours, meaning)
        title = f"mean {number(float(scores.mean()))}"
    else:
        apart = _scores(separate, others, X, y, sample_weight)[chosen]
        gains = scores - apart
        shown = _first_and_last(gains, int(top))
        axes = _draw_gains(ax, scores[shown], apart[shown], [called[k] for k in shown.tolist()], meaning)
        means = (number(float(one.mean())) for one in (scores, apart))
        title = f"{np.count_nonzero(gains > 0)} of {len(gains)} outputs gain: mean {' against '.join(means)}"
    if len(shown) < len(called):
        title += f"\n{len(shown)} of {len(called)} outputs: the first and the last"
    axes.set_title(title, fontsize=10)
    return axes


def _scores(model: Any, names: NamedTrees, X: Any, y: Any, sample_weight: Any) -> FloatArray:
    """Return a score for each output, in the order of y."""
    raw, coded, weight = rows_beside_targets(model, X, y, sample_weight)
    if len(raw) == 0:
        raise ValueError("X has no row to score.")
    coding = names.model.coding
    found = coding.in_order_of_y(output_scores(coding, names.model.loss, raw, coded, weight))
    return np.asarray(found, dtype=np.float64)


def _meaning(coding: TargetCoding) -> str:
    if coding.kind == "mixed":
        return "score: R2, of quantiles D2"
    if coding.levels is not None:
        return "D2 of the pinball loss"
    return "R2" if coding.kind == "regression" else "R2 of the probability"


def _first_and_last(values: FloatArray, top: int) -> npt.NDArray[np.intp]:
    """Return the largest values and the smallest ones, half of the room for either, the largest first."""
    order = np.argsort(-values, kind="stable")
    if len(order) <= top:
        return order
    last = top // 2
    return np.concatenate([order[: top - last], order[len(order) - last :]])


def _draw_gains(ax: Any, together: FloatArray, apart: FloatArray, called: list[str], meaning: str) -> Axes:
    axes = axes_to_draw_on(ax, 6.8, min(_HIGHEST, 1.5 + _HEIGHT * max(len(called), 3)))
    places = np.arange(len(called))
    colours = [_GAIN if gain >= 0 else _LOSS for gain in (together - apart).tolist()]
    axes.hlines(places, apart, together, colors=colours, linewidth=2.2, zorder=1)
    hollow: dict[str, Any] = {"facecolors": "white", "edgecolors": FAINT_INK, "linewidths": 1.2}
    axes.scatter(apart, places, s=26, zorder=2, **hollow)
    axes.scatter(together, places, s=30, c=colours, zorder=3)
    low, high = float(min(together.min(), apart.min())), float(max(together.max(), apart.max()))
    room = high - low or 1.0
    axes.set_xlim(low - 0.05 * room, high + 0.2 * room)
    axes.set_xticks([one for one in axes.get_xticks() if low - 0.05 * room <= one <= 1.0])
    axes.set_ylim(len(called) - 0.4, -0.6)
    look: dict[str, Any] = {"fontsize": FONT_SIZE - 1, "va": "center", "ha": "right"}
    for place, gain in enumerate((together - apart).tolist()):
        beside: Any = axes.get_yaxis_transform()
        axes.text(0.995, place, signed(gain), transform=beside, color=colours[place], **look)
    axes.set_xlabel(f"{meaning}     ○ separate     ● this model", fontsize=FONT_SIZE)
    axes.tick_params(axis="x", labelsize=FONT_SIZE)
    axes.grid(axis="x", color=FAINT_INK, alpha=0.25, linewidth=0.6)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    write_names(axes, y=short_names(called, 32))
    axes.tick_params(axis="y", length=0)
    return axes
