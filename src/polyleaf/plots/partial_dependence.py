"""What the outputs do as a feature changes: lines, points of categories, and lines of single rows."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.explain.features import chosen_features
from polyleaf.explain.outputs import chosen_outputs
from polyleaf.explain.partial_dependence import KINDS, PartialDependence
from polyleaf.params.combinations import check
from polyleaf.params.rules import Boolean, Choice, Integer
from polyleaf.params.situation import Situation
from polyleaf.plots.canvas import FONT_SIZE, axes_to_draw_on, check_axes
from polyleaf.plots.dependence_map import draw_maps
from polyleaf.plots.feature_values import feature_values
from polyleaf.plots.labels import number, short, short_names, write_names
from polyleaf.plots.leading import leading, say_how_many
from polyleaf.plots.models import names_of
from polyleaf.plots.palette import FAINT_INK, MARKERS, line_look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_VALUES, _VALUES_OF_TWO = 100, 40
_MOST_ROWS = 200  # whose lines are drawn
_GAP = 0.1  # between the last number and a missing value, as a share of the axis
_SPREAD = 0.5  # of the points of several outputs; categories are 1 apart


def plot_partial_dependence(
    model: Any,
    X: Any,
    features: Any,
    outputs: Any = None,
    top: int = 8,
    *,
    kind: str = "average",
    response: str = "prediction",
    centered: bool = False,
    grid_resolution: int | None = None,
    percentiles: tuple[float, float] = (0.05, 0.95),
    custom_values: Mapping[Any, Any] | None = None,
    sample_weight: Any = None,
    ax: Axes | None = None,
) -> Any:
    """Draw what the outputs are on average where one or two features have other values.

    One feature is a line for each output, or points for categories; ticks at the bottom are the deciles of
    its values. Two features are a map for each output. A missing value, where `X` has one, comes last.

    Parameters
    ----------
    model : estimator
        A fitted one.
    X : array-like, data frame, sparse matrix or source
        The rows to take means of, as in `partial_dependence`.
    features : int, str, or sequence of one or two of these
        Which features, by number or by name.
    outputs : int, str, or sequence of these, default=None
        Which outputs, by number or by name; None: all.
    top : int, default=8
        How many outputs to draw at most: those that change the most.
    kind : {"average", "individual", "both"}, default="average"
        Means, thin lines of single rows (of more than 200, as many at equal distances), or both.
    response : {"prediction", "raw"}, default="prediction"
        Predictions and probabilities, or raw scores.
    centered : bool, default=False
        Whether to draw changes since the first value of the grid: for outputs of different level, and rows.
    grid_resolution : int, default=None
        Values of a grid, as in `partial_dependence`; None: 100, of two features 40 each.
    percentiles, custom_values, sample_weight
        As in `partial_dependence`.
    ax : Axes, default=None
        Where to draw; None: a new figure.

    Returns
    -------
    Axes, or ndarray of Axes
        The latter with two features and several outputs, a map each.

    Raises
    ------
    TypeError, ValueError
        As `partial_dependence` does.
    """
    check_axes(ax)
    names = names_of(model)
    Integer(1).check("top", top)
    Choice(KINDS).check("kind", kind)
    Boolean().check("centered", centered)
    chosen = chosen_features(features, names.features)
    wanted = chosen_outputs(outputs, names.outputs)
    asked = {
        "ax": ax is not None,
        "several maps": len(chosen) == 2 and min(len(wanted), int(top)) > 1,
        "two features": len(chosen) == 2,
        "drawn rows": kind != "average",
    }
    check(Situation(asked=frozenset(name for name, is_asked in asked.items() if is_asked)))
    default = _VALUES if len(chosen) == 1 else _VALUES_OF_TWO
    options: dict[str, Any] = {
        "response": response,
        "grid_resolution": default if grid_resolution is None else grid_resolution,
        "percentiles": percentiles,
        "custom_values": custom_values,
    }
    found = model.partial_dependence(X, chosen, outputs=wanted, sample_weight=sample_weight, **options)
    average = _changes(found.average, len(chosen)) if centered else found.average
    ranges = np.ptp(average.reshape(len(wanted), -1), axis=1)
    first = leading(ranges, int(top))
    called = [names.outputs[k] for k in wanted[first].tolist()]
    meaning = _meaning(names.model.coding.kind, response, centered=centered)
    if len(chosen) == 2:
        return draw_maps(ax, found, average[first], called, meaning, len(wanted), about_zero=centered)
    rows = None
    if kind != "average":
        single = model.partial_dependence(X, chosen, outputs=wanted[first], kind="individual", **options)
        assert single.individual is not None
        n_rows = single.individual.shape[1]
        some = np.unique(np.linspace(0, n_rows - 1, min(n_rows, _MOST_ROWS)).astype(np.intp))
        rows = single.individual[:, some]
        rows = _changes(rows, 1) if centered else rows
    means = None if kind == "individual" else average[first]
    axes = axes_to_draw_on(ax, 6.4 if len(first) == 1 else 7.4, 4.0)
    is_category = chosen[0] in names.model.categories
    if is_category:
        looks = _draw_categories(axes, found, means, rows, len(first))
    else:
        values = feature_values(model, X, chosen)[:, 0]
        looks = _draw_numbers(axes, found, means, rows, len(first), values)
    _write_around(axes, found.features[0], called, meaning, looks, outside=ax is None)
    say_how_many(axes, len(first), len(wanted), "outputs")
    if is_category:
        write_names(axes, x=_category_names(found.grid_values[0]))
    return axes


def _changes(values: Any, n_features: int) -> FloatArray:
    """Return values less those at the first point of the grid."""
    changes: FloatArray = values - values[(..., *[slice(0, 1)] * n_features)]
    return changes


def _meaning(kind: str, response: str, *, centered: bool) -> str:
    word = "probability" if kind in ("multiclass", "binary", "multilabel") else "prediction"
    what = "raw score" if response == "raw" else word
    return f"change of the {what}" if centered else what


def _category_names(values: Array) -> list[str]:
    return short_names(["missing" if value is None else value for value in values.tolist()])


def _draw_numbers(
    axes: Axes,
    found: PartialDependence,
    means: FloatArray | None,
    rows: FloatArray | None,
    n_outputs: int,
    values: FloatArray,
) -> list[Any]:
    """Draw lines over numbers, and a missing value behind them; return what stands for each output."""
    grid = found.grid_values[0]
    order = np.argsort(grid, kind="stable")  # NaN last
    there = order[~np.isnan(grid[order])]
    gap = order[len(there) :][:1]
    numbers = grid[there]
    low, high = (float(numbers[0]), float(numbers[-1])) if len(numbers) > 0 else (0.0, 0.0)
    width = high - low or 1.0
    at_gap = high + _GAP * width
    looks = []
    for output in range(n_outputs):
        look = line_look(output)
        if rows is not None:
            _draw_rows(axes, numbers, rows[output][:, there], look["color"])
            if len(gap) > 0:
                _draw_row_marks(axes, at_gap, rows[output][:, gap[0]], look["color"])
        if means is not None:
            only: dict[str, Any] = {"marker": "o", "markersize": 5} if len(there) == 1 else {}
            (line,) = axes.plot(numbers, means[output, there], linewidth=1.8, zorder=3, **look, **only)
            if rows is not None:  # so that it stands out
                line.set(path_effects=[_white_edge()], linewidth=2.2)
            if len(gap) > 0:
                mark = MARKERS[output // 6 % len(MARKERS)]
                axes.plot([at_gap], [means[output, gap[0]]], marker=mark, markersize=5, zorder=3, **look)
        looks.append(look)
    known = values[~np.isnan(values)]
    deciles = np.quantile(known, np.linspace(0.1, 0.9, 9)).tolist() if len(known) > 0 else []
    inside = [one for one in deciles if low <= one <= high]
    axes.plot(
        inside,
        np.full(len(inside), 0.012),
        "|",
        color=FAINT_INK,
        markersize=7,
        transform=axes.get_xaxis_transform(),
    )
    end = at_gap if len(gap) > 0 else high
    axes.set_xlim(low - 0.03 * width, end + 0.05 * width)
    if len(gap) > 0:
        axes.axvline(high + 0.5 * _GAP * width, color=FAINT_INK, linewidth=0.8, linestyle=(0, (2, 2)))
        limit = high if len(numbers) > 0 else low - 1
        ticks = [one for one in axes.get_xticks() if low <= one <= limit - 0.04 * width]
        axes.set_xticks([*ticks, at_gap], [*(number(one) for one in ticks), "missing"])
    return looks


def _draw_rows(axes: Axes, numbers: FloatArray, rows: FloatArray, colour: str) -> None:
    lines = [np.column_stack([numbers, row]) for row in rows]
    collections: Any = import_module("matplotlib.collections")
    thin = collections.LineCollection(lines, colors=colour, linewidths=0.5, alpha=0.25, zorder=1)
    thin.set_rasterized(True)
    axes.add_collection(thin)
    axes.autoscale_view()


def _white_edge() -> Any:
    return import_module("matplotlib.patheffects").withStroke(linewidth=4.5, foreground="white")


def _draw_row_marks(axes: Axes, place: float, values: FloatArray, colour: str) -> None:
    look: dict[str, Any] = {"color": colour, "alpha": 0.25, "linewidths": 0.7, "rasterized": True}
    axes.scatter(np.full(len(values), place), values, marker="_", s=40, zorder=1, **look)


def _draw_categories(
    axes: Axes, found: PartialDependence, means: FloatArray | None, rows: FloatArray | None, n_outputs: int
) -> list[Any]:
    """Draw points above the names of categories; return what stands for each output."""
    n_values = len(found.grid_values[0])
    looks = []
    for output in range(n_outputs):
        beside = _SPREAD * ((output + 0.5) / n_outputs - 0.5)
        look = {"color": line_look(output)["color"], "marker": MARKERS[output // 6 % len(MARKERS)]}
        for place in range(n_values if rows is not None else 0):
            assert rows is not None
            _draw_row_marks(axes, place + beside, rows[output][:, place], look["color"])
        if means is not None:
            places = np.arange(n_values) + beside
            axes.plot(places, means[output], linestyle="none", markersize=6, zorder=3, **look)
        looks.append({**look, "linestyle": "none"})
    for place in range(1, n_values):
        axes.axvline(place - 0.5, color=FAINT_INK, linewidth=0.4, alpha=0.5, zorder=0)
    axes.set_xlim(-0.5, n_values - 0.5)
    return looks


def _write_around(
    axes: Axes, feature: str, called: list[str], meaning: str, looks: list[Any], *, outside: bool
) -> None:
    axes.set_xlabel(short(feature, 40), fontsize=FONT_SIZE, parse_math=False)
    one = len(called) == 1
    label = f"{short(called[0], 24)}: {meaning}" if one else meaning
    axes.set_ylabel(label, fontsize=FONT_SIZE, parse_math=False)
    axes.tick_params(labelsize=FONT_SIZE)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if one:
        return
    where: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)} if outside else {}
    line = import_module("matplotlib.lines").Line2D
    handles = [line([], [], linewidth=1.8, **look) for look in looks]
    legend = axes.legend(handles, short_names(called), fontsize=FONT_SIZE, frameon=False, **where)
    for text in legend.get_texts():
        text.set_parse_math(False)
