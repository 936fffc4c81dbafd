"""All nodes of a model as columns, one row for each node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import FloatArray
from polyleaf.inspect.frames import Column, ListColumn, TextColumn
from polyleaf.inspect.named_trees import NamedTrees


def node_columns(trees: NamedTrees, values: str, outputs: Sequence[int]) -> dict[str, Column]:
    """Return the columns of ``to_frame``.

    Parameters
    ----------
    trees : NamedTrees
        The model.
    values : {"columns", "list"}
        Whether the values of leaves are a column for each output, or lists.
    outputs : sequence of int
        Which outputs, by their places in the order of y.
    """
    forest = trees.forest
    leaf = forest.left < 0
    by_category = np.diff(forest.category_begin) > 0
    categories = ListColumn([None] * len(leaf))
    for node in np.flatnonzero(by_category).tolist():
        categories[node] = [str(value) for value in trees.categories(node)[0]]
    sides = np.where(forest.missing_left != 0, "left", "right").tolist()
    columns: dict[str, Column] = {
        "tree": trees.tree,
        "round": trees.tree // forest.trees_per_round,
        "node": np.arange(len(leaf)) - forest.node_begin[trees.tree],
        "depth": trees.depth,
        "parent": np.ma.masked_equal(trees.parent, -1),
        "left": np.ma.masked_array(forest.left.astype(np.int64), leaf),
        "right": np.ma.masked_array(forest.left.astype(np.int64) + 1, leaf),
        "feature": TextColumn(
            None if is_leaf else trees.features[feature]
            for is_leaf, feature in zip(leaf.tolist(), forest.feature.tolist(), strict=True)
        ),
        "threshold": np.where(leaf | by_category, np.nan, forest.threshold),
        "categories": categories,
        "missing": TextColumn(
            None if is_leaf else side for is_leaf, side in zip(leaf.tolist(), sides, strict=True)
        ),
        "gain": np.where(leaf, np.nan, forest.gain),
        "cover": forest.cover.copy(),
        "count": forest.count.copy(),
    }
    return columns | (_value_lists if values == "list" else _value_columns)(trees, leaf, outputs)


def _value_columns(
    trees: NamedTrees, leaf: npt.NDArray[np.bool_], outputs: Sequence[int]
) -> dict[str, Column]:
    """Return a column for each output; NaN where a node has no value of it."""
    forest = trees.forest
    column_of = np.full(forest.n_outputs, -1, dtype=np.intp)  # of outputs of the forest
    column_of[np.argsort(trees.place)[list(outputs)]] = np.arange(len(outputs))
    found: FloatArray = np.full((len(outputs), len(leaf)), np.nan)
    for tree in range(forest.n_trees):
        begin = int(forest.node_begin[tree])
        nodes = begin + np.flatnonzero(leaf[begin : int(forest.node_begin[tree + 1])])
        width = int(forest.tree_width[tree])
        cells = forest.value_begin[nodes][:, np.newaxis] + np.arange(width)
        if len(forest.value_output) > 0:
            of_forest = forest.value_output[cells]
        else:
            of_forest = np.broadcast_to(forest.tree_output[tree] + np.arange(width), cells.shape)
        wanted = column_of[of_forest] >= 0
        rows = np.broadcast_to(nodes[:, np.newaxis], cells.shape)[wanted]
        of_values = of_forest[wanted]
        found[column_of[of_values], rows] = forest.values[cells[wanted]] * forest.unit[of_values]
    return {f"value_{trees.outputs[place]}": found[j] for j, place in enumerate(outputs)}


def _value_lists(trees: NamedTrees, leaf: npt.NDArray[np.bool_], outputs: Sequence[int]) -> dict[str, Column]:
    """Return the names of a leaf's outputs, and its values, side by side."""
    names, values = ListColumn([None] * len(leaf)), ListColumn([None] * len(leaf))
    wanted = np.zeros(len(trees.outputs), dtype=bool)
    wanted[list(outputs)] = True
    for node in np.flatnonzero(leaf).tolist():
        places, of_leaf = trees.leaf(node)
        kept = wanted[places]
        names[node] = [trees.outputs[place] for place in places[kept].tolist()]
        values[node] = of_leaf[kept].tolist()
    return {"outputs": names, "values": values}
