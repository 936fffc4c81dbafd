"""One tree: its splits as boxes, its leaves as strips of colours over the outputs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.explain.clustering import clustered
from polyleaf.inspect.leaf import SplitCondition, condition_at
from polyleaf.inspect.named_trees import NamedTrees
from polyleaf.params.rules import Boolean, Integer
from polyleaf.plots.canvas import FONT_SIZE, axes_to_draw_on, check_axes, laid_out_inches
from polyleaf.plots.colour_bar import draw_colours
from polyleaf.plots.labels import number, short, short_names, write_names
from polyleaf.plots.models import names_of
from polyleaf.plots.palette import FAINT_INK, INK
from polyleaf.plots.tree_layout import PlacedColumn, PlacedSplit, TreeLayout, lay_out

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# In inches.
_COLUMN, _LEVEL, _CELL = 0.72, 0.85, 0.2
_WIDEST, _HIGHEST_STRIP = 26.0, 5.0
_MOST_IN_A_LINE = 19
_SMALLEST_FONT = 2.0


def plot_tree(
    model: Any,
    tree: int = 0,
    *,
    max_depth: int | None = 4,
    cluster_outputs: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw a tree: splits as boxes, leaves as strips of colours with a cell for each output.

    Rows for which the condition in a box holds go to the left; an arrow says where missing values go. The
    number above a strip is that of its training rows.

    Parameters
    ----------
    model : estimator
        A fitted one.
    tree : int, default=0
        Which tree, from 0 on, up to the best round.
    max_depth : int, default=4
        How many levels of splits to draw. What is below has one strip: the mean of its leaves by cover. None:
        all levels.
    cluster_outputs : bool, default=False
        Whether outputs that are alike in this tree are neighbours; otherwise they have the order of y. Those
        that no leaf of the tree has a value for are left out.
    ax : Axes, default=None
        Where to draw; None: a new figure.

    Returns
    -------
    Axes
        With the boxes as texts, and an image of outputs x leaves.

    Raises
    ------
    ValueError
        When there is no such tree.
    """
    check_axes(ax)
    trees = names_of(model)
    Integer(0).check("tree", tree)
    Integer(0, or_none=True).check("max_depth", max_depth)
    Boolean().check("cluster_outputs", cluster_outputs)
    if tree >= trees.forest.n_trees:
        raise ValueError(
            f"there is no tree {tree}: the model has {trees.forest.n_trees} up to its best round, from 0 on."
        )
    layout = lay_out(trees, int(tree), None if max_depth is None else int(max_depth))
    values = np.column_stack([column.values for column in layout.columns])
    outputs = np.flatnonzero(np.isfinite(values).any(axis=1))
    if cluster_outputs:
        outputs = outputs[clustered(np.nan_to_num(values[outputs]))]
    return _draw(ax, trees, int(tree), layout, values[outputs], [trees.outputs[k] for k in outputs.tolist()])


def _draw(
    ax: Any, trees: NamedTrees, tree: int, layout: TreeLayout, values: FloatArray, outputs: list[str]
) -> Axes:
    n_outputs, n_columns = values.shape
    n_levels = 1 + max((split.depth for split in layout.splits), default=0)
    strip = min(_HIGHEST_STRIP, max(_CELL * n_outputs, 3 * _CELL))
    width = min(_WIDEST, max(2.6 + _COLUMN * n_columns, 5.0))
    axes = axes_to_draw_on(ax, width, 0.9 + _LEVEL * (n_levels + 0.4) + strip)
    level = _LEVEL / strip * n_outputs  # in units of cells
    top = -0.5 - (n_levels if layout.splits else 0.5) * level  # of the root; cells begin at -0.5

    draw_colours(axes, values, "value of the leaf", about_zero=True, pad=0.01, shrink=0.6, anchor=(0.0, 0.0))
    axes.set_xlim(-0.7, n_columns - 0.3)
    axes.set_ylim(n_outputs - 0.5, top - 0.4 * level)
    axes.set_facecolor("none")
    for column in range(1, n_columns):  # a gap between strips
        axes.plot([column - 0.5] * 2, [-0.5, n_outputs - 0.5], color="white", linewidth=3)
    texts = []
    for split in layout.splits:
        y = top + split.depth * level
        for x, depth in split.below:
            end = -0.5 if depth is None else top + depth * level
            axes.plot([split.x, x, x], [y, y, end], color=FAINT_INK, linewidth=1, zorder=2)
        texts.append(_write(axes, split.x, y, _question(trees, split), boxed=True))
    for x, one in enumerate(layout.columns):
        texts.append(_write(axes, x, -0.5 - 0.16 * level, _rows(trees, one), boxed=False))
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_xticks([])
    axes.set_title(f"tree {tree} (round {tree // trees.forest.trees_per_round})", fontsize=10)
    write_names(axes, y=short_names(outputs))
    _shrink_to_fit(axes, texts, n_columns, level)
    return axes


def _write(axes: Axes, x: float, y: float, text: str, *, boxed: bool) -> Any:
    box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": FAINT_INK if boxed else "none"}
    box |= {} if boxed else {"boxstyle": "square,pad=0.1"}
    look: dict[str, Any] = {"fontsize": FONT_SIZE, "color": INK, "ha": "center", "va": "center"}
    return axes.text(x, y, text, bbox=box, zorder=3, parse_math=False, linespacing=1.15, **look)


def _question(trees: NamedTrees, split: PlacedSplit) -> str:
    """Return what a box says: the feature, what is asked of it, the rows and where missing values go."""
    left, right = (condition_at(trees, split.node, goes_left=side) for side in (True, False))
    lines = (
        short(left.feature, _MOST_IN_A_LINE),
        _asked(left, right),
        f"n {int(trees.forest.count[split.node])}, {'← missing' if left.missing else 'missing →'}",
    )
    return "\n".join(lines)


def _asked(left: SplitCondition, right: SplitCondition) -> str:
    if left.categories is not None and right.categories is not None:
        fewer_right = len(right.categories) < len(left.categories)
        return _listed("not in", right.categories) if fewer_right else _listed("in", left.categories)
    assert left.threshold is not None
    if math.isinf(left.threshold):
        return "is missing" if left.missing else "is not missing"
    return f"≤ {number(left.threshold)}"


def _listed(word: str, categories: tuple[Any, ...]) -> str:
    """Return the categories that fit into a line, short names first, and how many more there are."""
    names = sorted((short(value, _MOST_IN_A_LINE - 8) for value in categories), key=len)
    for shown in range(len(names), 1, -1):
        more = f", +{len(names) - shown}" if shown < len(names) else ""
        text = f"{word} {', '.join(names[:shown])}{more}"
        if len(text) <= _MOST_IN_A_LINE:
            return text
    return f"{word} {names[0]}" + (f", +{len(names) - 1}" if len(names) > 1 else "")


def _rows(trees: NamedTrees, column: PlacedColumn) -> str:
    rows = f"{int(trees.forest.count[column.node])}"
    return rows if column.n_leaves == 1 else f"{rows}\n{column.n_leaves} leaves"


def _shrink_to_fit(axes: Axes, texts: list[Any], n_columns: int, level: float) -> None:
    """Make the font smaller where a box is too large for two columns and a level, a number for one."""
    width, height = laid_out_inches(axes)
    figure: Any = axes.get_figure(root=True)
    column = width / n_columns * figure.dpi
    level_height = height * figure.dpi * level / abs(float(np.diff(axes.get_ylim())[0]))
    least = 1.0
    for text in texts:
        box, boxed = text.get_window_extent(), text.get_bbox_patch().get_edgecolor()[3] > 0
        across, down = (1.75, 0.6) if boxed else (0.87, 0.3)
        least = min(least, across * column / box.width, down * level_height / box.height)
    for text in texts:
        text.set_fontsize(max(_SMALLEST_FONT, FONT_SIZE * least))
