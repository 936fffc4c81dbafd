"""Trees as nodes of ONNX: from the table of numbers to raw scores, and to the numbers of leaves.

`TreeEnsemble` (of ``ai.onnx.ml`` 5) compares and adds in float64, and has sets of categories, but one number
a leaf. So there are three ways to the sums, all of them float64:

- Every leaf has one value: the operator adds them up.
- Leaves hold a value for each output: the operator gives the number of each tree's leaf, and `Gather` takes
  the values from a table with a row for each leaf, of some trees at a time, so that memory stays bounded.
- Leaves are sparse: the same, with a table of outputs beside that of values; `ScatterElements` adds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import FloatArray
from polyleaf.export.onnx_graph import ML_DOMAIN, OnnxGraph
from polyleaf.export.onnx_inputs import FIRST_CODE, OnnxFeatures
from polyleaf.export.served_model import ServedModel

Integers = npt.NDArray[np.int64]
Taken = TypeVar("Taken", bound=tuple[str, ...])

# Modes of nodes, and what adds up leaves.
_AT_MOST, _IS_MEMBER = 0, 6
_SUM = 1
# Values that are taken for a row together: fewer cost more nodes, more cost memory.
_TOGETHER = 1024
_FEWEST_TREES_TOGETHER = 4


@dataclass(frozen=True)
class OnnxTrees:
    """The trees of a model, and the values of a graph that they ask."""

    graph: OnnxGraph
    served: ServedModel
    features: OnnxFeatures

    def raw_scores(self) -> str:
        """Return the name of the raw scores, float64 of shape (rows, outputs)."""
        forest, graph = self.served.forest, self.graph
        base = graph.constant(self.served.base_in_units()[np.newaxis], "base_score")
        if forest.n_trees == 0:
            scores = self._of_all_rows(base)
        elif (forest.tree_width == 1).all():
            scores = graph.node("Add", [self._sums_of_values(), base])
        elif not self.served.has_sparse_leaves and (forest.tree_width == forest.n_outputs).all():
            scores = self._gathered_sums(base)
        else:
            scores = self._scattered_sums(base)
        return self._in_units(scores)

    def leaf_nodes(self) -> str:
        """Return the name of the leaves, int64 of shape (rows, trees): nodes as `apply` numbers them."""
        forest = self.served.forest
        if forest.n_trees == 0:
            return self._of_all_rows(self.graph.constant(np.empty((1, 0), dtype=np.int64), "no_tree"))
        number = self._leaves - forest.node_begin[self._tree_of_leaf]
        return self.graph.cast(
            self._ensemble(number.astype(np.float64), self._tree_of_leaf, forest.n_trees), "int64"
        )

    # --- sums ----------------------------------------------------------------------------------------------

    def _sums_of_values(self) -> str:
        """Return the sums of the leaves' only values."""
        forest = self.served.forest
        first = forest.value_begin[self._leaves]
        outputs = forest.tree_output[self._tree_of_leaf].astype(np.int64)
        if self.served.has_sparse_leaves:
            outputs += forest.value_output[first]
        return self._ensemble(forest.values[first].astype(np.float64), outputs, forest.n_outputs)

    def _gathered_sums(self, base: str) -> str:
        """Return the sums of rows of a table of values."""
        graph, forest = self.graph, self.served.forest
        places = forest.value_begin[self._leaves][:, np.newaxis] + np.arange(forest.n_outputs)
        values = graph.constant(forest.values[places], "leaf_values")
        trees = graph.constant(np.array([1]), "trees")

        def taken(leaves: str, _: int) -> tuple[str]:
            of_trees = graph.cast(graph.node("Gather", [values, leaves]), "float64")
            return (graph.node("ReduceSum", [of_trees, trees], keepdims=0),)

        def added(scores: str, values: tuple[str]) -> str:
            return graph.node("Add", [scores, *values])

        return _one_ahead(base, self._numbers_of_leaves(forest.n_outputs), taken, added)

    def _scattered_sums(self, base: str) -> str:
        """Return the sums of values that say which output they are for."""
        graph, forest = self.graph, self.served.forest
        values, outputs = leaf_pairs(self.served)
        width = values.shape[1]
        value_table = graph.constant(values, "leaf_values")
        output_table = graph.constant(np.maximum(outputs, 0), "leaf_outputs")

        def taken(leaves: str, n_trees: int) -> tuple[str, str]:
            shape = graph.constant(np.array([0, n_trees * width]), "shape")
            places = graph.node("Reshape", [graph.node("Gather", [output_table, leaves]), shape])
            of_trees = graph.cast(graph.node("Gather", [value_table, leaves]), "float64")
            return places, graph.node("Reshape", [of_trees, shape])

        def added(scores: str, values: tuple[str, str]) -> str:
            return graph.node("ScatterElements", [scores, *values], axis=1, reduction="add")

        # Scores are copied each time: as many values at a time as there are scores.
        parts = self._numbers_of_leaves(width, max(_TOGETHER, forest.n_outputs))
        return _one_ahead(self._of_all_rows(base), parts, taken, added)

    def _numbers_of_leaves(self, width: int, together: int = _TOGETHER) -> list[tuple[str, int]]:
        """Return the numbers of leaves, counted over all trees, and of how many trees each of them has."""
        n_trees = self.served.forest.n_trees
        numbers = np.arange(len(self._leaves), dtype=np.float64)
        leaves = self.graph.cast(self._ensemble(numbers, self._tree_of_leaf, n_trees), "int64")
        at_once = max(_FEWEST_TREES_TOGETHER, together // width)
        sizes = [min(at_once, n_trees - begin) for begin in range(0, n_trees, at_once)]
        return list(zip(self.graph.split(leaves, sizes), sizes, strict=True))

    def _in_units(self, scores: str) -> str:
        """Return raw scores from sums of leaf values."""
        unit = self.served.forest.unit
        if (unit == 1).all():
            return scores
        return self.graph.node("Mul", [scores, self.graph.constant(unit[np.newaxis], "unit")])

    def _of_all_rows(self, row: str) -> str:
        """Return a row of numbers once for each row of the input."""
        graph = self.graph
        rows = graph.node("Shape", [self.features.first_input], start=0, end=1)
        shape = graph.node("Concat", [rows, graph.constant(np.array([1]), "one")], axis=0)
        return graph.node("Expand", [row, shape])

    # --- the operator --------------------------------------------------------------------------------------

    @cached_property
    def _leaves(self) -> Integers:
        """The leaves of all trees."""
        return np.flatnonzero(self.served.forest.left < 0)

    @cached_property
    def _tree_of_node(self) -> Integers:
        forest = self.served.forest
        return np.repeat(np.arange(forest.n_trees), np.diff(forest.node_begin))

    @cached_property
    def _tree_of_leaf(self) -> Integers:
        return self._tree_of_node[self._leaves]

    def _ensemble(self, weights: FloatArray, targets: Integers, n_targets: int) -> str:
        """Return the sums, for each target, of the weights of the leaves that a row falls into."""
        # A tree of one leaf is a split with that leaf on both sides, the second time as one more leaf.
        leaves = np.concatenate([np.arange(len(self._leaves)), self._place[self._lone]])
        return self.graph.node(
            "TreeEnsemble",
            [self.features.table],
            domain=ML_DOMAIN,
            n_targets=n_targets,
            aggregate_function=_SUM,
            leaf_weights=self.graph.tensor(weights[leaves], "leaf_weights"),
            leaf_targetids=targets[leaves].tolist(),
            **self._structure,
        )

    @cached_property
    def _lone(self) -> Integers:
        """The roots that are leaves."""
        roots = self.served.forest.node_begin[:-1]
        return roots[self.served.forest.left[roots] < 0]

    @cached_property
    def _place(self) -> Integers:
        """Where each split stands among the splits of the operator, and each leaf among its leaves."""
        place = np.empty(len(self.served.forest.left), dtype=np.int64)
        place[self._splits] = np.arange(len(self._splits))
        place[self._leaves] = np.arange(len(self._leaves))
        return place

    @cached_property
    def _branches(self) -> tuple[Integers, Integers]:
        """For each node its children where the comparison is true and where it is false; of leaves, anything.

        "True" is at most the threshold, on the left; or in the set, where missing values do not go.
        """
        forest = self.served.forest
        left = forest.node_begin[self._tree_of_node] + forest.left
        true_is_left = ~(self.served.splits_by_category & (forest.missing_left != 0))
        return np.where(true_is_left, left, left + 1), np.where(true_is_left, left + 1, left)

    @cached_property
    def _splits(self) -> Integers:
        """The splits of all trees, each followed by those of its true branch and then of its false one.

        By the standard, sets come in the order of the nodes; ONNX's own evaluator takes them in this one.
        """
        forest, (true, false) = self.served.forest, self._branches
        is_split = forest.left >= 0
        levels = [forest.node_begin[:-1]]
        while len(levels[-1]) > 0:
            above = levels[-1][is_split[levels[-1]]]
            levels.append(np.concatenate([true[above], false[above]]))
        size = is_split.astype(np.int64)  # of splits from a node on
        for nodes in reversed(levels):
            above = nodes[is_split[nodes]]
            size[above] += size[true[above]] + size[false[above]]
        place = np.zeros(len(size), dtype=np.int64)
        place[levels[0]] = np.cumsum(size[levels[0]]) - size[levels[0]]
        for nodes in levels:
            above = nodes[is_split[nodes]]
            place[true[above]] = place[above] + 1
            place[false[above]] = place[above] + 1 + size[true[above]]
        splits = np.flatnonzero(is_split)
        return splits[np.argsort(place[splits])]

    @cached_property
    def _structure(self) -> dict[str, Any]:
        """The attributes of the operator that say where each row goes."""
        forest, served, splits, lone = self.served.forest, self.served, self._splits, self._lone
        by_category = served.splits_by_category[splits]
        missing_true = (forest.missing_left[splits] != 0) & ~by_category
        true, false = (np.concatenate([branch[splits], lone]) for branch in self._branches)
        false_place = self._place[false]
        false_place[len(splits) :] = len(self._leaves) + np.arange(len(lone))
        roots = forest.node_begin[:-1]
        is_leaf = forest.left < 0
        root_place = self._place[roots]
        root_place[is_leaf[roots]] = len(splits) + np.arange(len(lone))
        without = np.zeros(len(lone))
        modes = np.concatenate([np.where(by_category, _IS_MEMBER, _AT_MOST), without])
        thresholds = np.concatenate([np.where(by_category, 0.0, forest.threshold[splits]), without])
        features = np.concatenate([self.features.column[forest.feature[splits]], without])
        tensor = self.graph.tensor
        structure = {
            "tree_roots": root_place.tolist(),
            "nodes_featureids": features.astype(np.int64).tolist(),
            "nodes_modes": tensor(modes.astype(np.uint8), "nodes_modes"),
            "nodes_splits": tensor(thresholds, "nodes_splits"),
            "nodes_missing_value_tracks_true": [*missing_true.astype(np.int64).tolist(), *[0] * len(lone)],
            "nodes_truenodeids": self._place[true].tolist(),
            "nodes_falsenodeids": false_place.tolist(),
            "nodes_trueleafs": is_leaf[true].astype(np.int64).tolist(),
            "nodes_falseleafs": is_leaf[false].astype(np.int64).tolist(),
        }
        if by_category.any():
            sets = [
                np.append(FIRST_CODE + served.category_set(node), np.nan)
                for node in splits[by_category].tolist()
            ]
            structure["membership_values"] = tensor(np.concatenate(sets), "membership_values")
        return structure


def _one_ahead(
    scores: str,
    parts: list[tuple[str, int]],
    taken: Callable[[str, int], Taken],
    added: Callable[[str, Taken], str],
) -> str:
    """Return the scores with the values of all parts added, which are taken one part ahead.

    Of the inputs of a node, onnxruntime computes the one that was listed last first. Were that the values, it
    would take those of all parts, and hold them, before it adds any.
    """
    waiting: Taken | None = None
    for leaves, n_trees in parts:
        values = taken(leaves, n_trees)
        if waiting is not None:
            scores = added(scores, waiting)
        waiting = values
    assert waiting is not None
    return added(scores, waiting)


def leaf_pairs(served: ServedModel) -> tuple[npt.NDArray[np.float32], Integers]:
    """Return values and outputs of all leaves, of shape (leaves, most values of a leaf).

    Leaves that hold fewer are filled up with zeros for the output -1.
    """
    forest = served.forest
    leaves = np.flatnonzero(forest.left < 0)
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.node_begin))[leaves]
    offset = np.arange(forest.tree_width.max(initial=0))
    there = offset < forest.tree_width[tree][:, np.newaxis]
    places = np.where(there, forest.value_begin[leaves][:, np.newaxis] + offset, 0)
    outputs = forest.tree_output[tree].astype(np.int64)[:, np.newaxis]
    outputs = outputs + (forest.value_output[places] if served.has_sparse_leaves else offset)
    return np.where(there, forest.values[places], np.float32(0)), np.where(there, outputs, -1)
