"""A tree laid out: columns at the bottom, splits above the middle of what they split."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.inspect.named_trees import NamedTrees


@dataclass(frozen=True)
class PlacedSplit:
    """A split in the picture.

    Attributes
    ----------
    node : int
        Counted in the forest.
    x, depth : float, int
        Where it stands; columns are 1 apart.
    below : tuple of (x, depth or None)
        Where its children stand: splits at their depth, columns at the bottom (None).
    """

    node: int
    x: float
    depth: int
    below: tuple[tuple[float, int | None], tuple[float, int | None]]


@dataclass(frozen=True)
class PlacedColumn:
    """A leaf in the picture, or all the leaves below a split that is not drawn.

    Attributes
    ----------
    node : int
        Counted in the forest.
    n_leaves : int
        How many leaves it stands for.
    values : float64 ndarray of shape (outputs,)
        Their mean by cover; NaN where none has a value.
    """

    node: int
    n_leaves: int
    values: FloatArray


@dataclass(frozen=True)
class TreeLayout:
    """Where the nodes of a tree stand: its splits, and its columns from the left to the right."""

    splits: list[PlacedSplit] = field(default_factory=list)
    columns: list[PlacedColumn] = field(default_factory=list)


def lay_out(trees: NamedTrees, tree: int, max_depth: int | None) -> TreeLayout:
    """Lay out a tree; splits at `max_depth` and below are drawn as a column."""
    left, begin = trees.forest.left, int(trees.forest.node_begin[tree])
    layout = TreeLayout()

    def place(node: int, depth: int) -> tuple[float, int | None]:
        if left[node] < 0 or depth == max_depth:
            layout.columns.append(_column(trees, begin, node))
            return float(len(layout.columns) - 1), None
        first = begin + int(left[node])
        below = (place(first, depth + 1), place(first + 1, depth + 1))
        x = 0.5 * (below[0][0] + below[1][0])
        layout.splits.append(PlacedSplit(node, x, depth, below))
        return x, depth

    place(begin, 0)
    return layout


def _column(trees: NamedTrees, begin: int, node: int) -> PlacedColumn:
    forest = trees.forest
    leaves, nodes = [], [node]
    while nodes:
        one = nodes.pop()
        if forest.left[one] < 0:
            leaves.append(one)
        else:
            first = begin + int(forest.left[one])
            nodes += [first, first + 1]
    sums = np.zeros(len(trees.outputs))
    held = np.zeros(len(trees.outputs), dtype=bool)
    cover = forest.cover[leaves].astype(np.float64)
    share = cover / cover.sum() if cover.sum() > 0 else np.full(len(leaves), 1 / len(leaves))
    for leaf, part in zip(leaves, share.tolist(), strict=True):
        places, values = trees.leaf(leaf)
        sums[places] += part * values
        held[places] = True
    return PlacedColumn(node, len(leaves), np.where(held, sums, np.nan))
