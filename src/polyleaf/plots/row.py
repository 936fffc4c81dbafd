"""One row: what its features add to the outputs, and why one output and not another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polyleaf.data.binned_table import check_has_values
from polyleaf.data.inputs import FloatArray
from polyleaf.explain.clustering import clustered
from polyleaf.explain.outputs import chosen_outputs
from polyleaf.inspect.named_trees import NamedTrees
from polyleaf.params.combinations import refused
from polyleaf.params.rules import Integer
from polyleaf.params.situation import Situation
from polyleaf.plots.bars import draw_bars
from polyleaf.plots.canvas import FONT_SIZE, check_axes
from polyleaf.plots.feature_values import feature_values, said
from polyleaf.plots.heat_map import draw_heat_map
from polyleaf.plots.labels import short, signed
from polyleaf.plots.leading import leading
from polyleaf.plots.models import names_of
from polyleaf.plots.palette import AGAINST, FOR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Numbers are written into the cells of so many outputs.
_MOST_WRITTEN = 16


def plot_row(
    model: Any,
    x: Any,
    outputs: Any = None,
    *,
    versus: tuple[int | str, int | str] | None = None,
    top: int = 15,
    ax: Axes | None = None,
) -> Axes:
    """Draw what the features of one row add to its raw scores (Shapley values).

    Several outputs are a heat map of features x outputs, one output is bars, and so is `versus`. What is not
    among the `top` features is added up in a line "other features".

    Parameters
    ----------
    model : estimator
        A fitted one.
    x : array-like, data frame or sparse matrix
        A table of one row, such as ``X.iloc[[5]]``, or the features of a row as an array.
    outputs : int, str, or sequence of these, default=None
        Which outputs, by number or by name; None: all.
    versus : (A, B), default=None
        Two outputs: draw what speaks for A and what for B, the difference of their Shapley values. Together
        with the line "average row" the bars add up to the difference of the raw scores.
    top : int, default=15
        How many features to draw at most.
    ax : Axes, default=None
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        With an image of features x outputs, or bars.

    Raises
    ------
    ValueError
        When there is not one row, an output does not exist, or both `outputs` and `versus` are given.
    """
    if versus is not None and outputs is not None:
        raise refused(Situation(asked=frozenset({"versus", "outputs"})))
    check_axes(ax)
    names = names_of(model)
    Integer(1).check("top", top)
    chosen = chosen_outputs(outputs, names.outputs) if versus is None else _pair(versus, names.outputs)
    table = _one_row(x)
    shap = np.asarray(model.shap_values(table, chosen), dtype=np.float64)
    shap = shap.reshape(len(names.features), len(chosen))
    base = np.asarray(model.expected_value_)[chosen]
    values = feature_values(model, table, range(len(names.features)))[0]
    if versus is not None:
        return _draw_versus(ax, names, chosen, shap, base, values, int(top))
    if len(chosen) == 1:
        return _draw_one(ax, names, int(chosen[0]), shap[:, 0], float(base[0]), values, int(top))
    return _draw_outputs(ax, names, chosen, shap, base, values, int(top))


def _pair(versus: Any, outputs: tuple[str, ...]) -> Any:
    if isinstance(versus, str) or not hasattr(versus, "__len__") or len(versus) != 2:
        raise TypeError(f"versus must be two outputs, (A, B); got {versus!r:.80}.")
    return chosen_outputs(tuple(versus), outputs)


def _one_row(x: Any) -> Any:
    """Return x as a table of one row."""
    check_has_values("x", x)
    table = np.asarray(x)[None, :] if isinstance(x, list | tuple | np.ndarray) and np.ndim(x) == 1 else x
    shape = getattr(table, "shape", None) if not isinstance(table, list | tuple) else np.shape(table)
    if shape is None or len(shape) != 2:
        raise TypeError(
            "x must be a table of one row, such as X.iloc[[5]] or X[5:6], or an array of one row; "
            f"got {type(x).__name__}."
        )
    if shape[0] != 1:
        raise ValueError(f"x must have one row; it has {shape[0]}. For the sixth: X.iloc[[5]] or X[5:6].")
    return table


def _lines(names: NamedTrees, shap: FloatArray, values: FloatArray, top: int) -> tuple[list[str], FloatArray]:
    """Return what the lines are called, and what they add to the outputs: features, and the rest of them."""
    first = leading(np.abs(shap).sum(axis=1), top)
    labels = [said(names, j, float(values[j])) for j in first.tolist()]
    lines = shap[first]
    rest = np.setdiff1d(np.arange(len(shap)), first)
    if len(rest) > 0:
        labels.append(f"{len(rest)} other feature{'s' if len(rest) > 1 else ''}")
        lines = np.vstack([lines, shap[rest].sum(axis=0)])
    return labels, lines


def _draw_outputs(
    ax: Any, names: NamedTrees, chosen: Any, shap: FloatArray, base: FloatArray, values: FloatArray, top: int
) -> Axes:
    labels, lines = _lines(names, shap, values, top)
    few = len(chosen) <= _MOST_WRITTEN
    across = np.arange(len(chosen)) if few else clustered(lines.T)
    score = base + shap.sum(axis=0)
    called = [f"{short(names.outputs[chosen[k]], 16)}: {signed(score[k])}" for k in across.tolist()]
    lines = lines[:, across]
    written = [[signed(value) for value in line] for line in lines.tolist()] if few else None
    axes = draw_heat_map(ax, lines, labels, called, "SHAP value", written, about_zero=True)
    axes.set_title("SHAP values of a row", fontsize=10)
    axes.set_xlabel("output: raw score of the row", fontsize=FONT_SIZE)
    return axes


def _draw_one(
    ax: Any, names: NamedTrees, output: int, shap: FloatArray, base: float, values: FloatArray, top: int
) -> Axes:
    labels, lines = _lines(names, shap[:, None], values, top)
    axes = _signed_bars(ax, lines[:, 0], labels, "SHAP value: what it adds to the raw score")
    score = signed(base + float(shap.sum()))
    title = f"{short(names.outputs[output], 32)}: raw score {score}, on average {signed(base)}"
    axes.set_title(title, fontsize=10, parse_math=False)
    return axes


def _draw_versus(
    ax: Any, names: NamedTrees, chosen: Any, shap: FloatArray, base: FloatArray, values: FloatArray, top: int
) -> Axes:
    difference = shap[:, :1] - shap[:, 1:]
    labels, lines = _lines(names, difference, values, top)
    labels, bars = ["average row", *labels], np.concatenate([[base[0] - base[1]], lines[:, 0]])
    a, b = (short(names.outputs[k], 20) for k in chosen.tolist())
    axes = _signed_bars(ax, bars, labels, "")
    axes.set_xlabel(f"← speaks for {b}        speaks for {a} →", fontsize=FONT_SIZE, parse_math=False)
    score = base + shap.sum(axis=0)
    title = f"why {a} ({signed(score[0])}) and not {b} ({signed(score[1])})"
    axes.set_title(title, fontsize=10, parse_math=False)
    return axes


def _signed_bars(ax: Any, bars: FloatArray, labels: list[str], meaning: str) -> Axes:
    colours = [FOR if value >= 0 else AGAINST for value in bars.tolist()]
    return draw_bars(ax, bars, labels, [signed(value) for value in bars.tolist()], colours, meaning)
