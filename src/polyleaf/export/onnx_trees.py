"""Trees as nodes of ONNX: from the table of numbers to raw scores, and to the numbers of leaves.

`TreeEnsemble` (of ``ai.onnx.ml`` 5) compares and adds in float64, and has sets of categories, but one number
a leaf. So there are three ways to the sums, all of them float64:

- Every leaf has one value: the operator adds them up.
- Leaves hold a value for each output: the operator gives the number of each tree's leaf, and `Gather` takes
  the values from a table with a row for each leaf, of some trees at a time, so that memory stays bounded.
- Leaves are sparse: the same, with a table of outputs beside that of values; `ScatterElements` adds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import FloatArray
from polyleaf.export.onnx_graph import ML_DOMAIN, OnnxGraph
from polyleaf.export.onnx_inputs import FIRST_CODE, OnnxFeatures
from polyleaf.export.served_model import ServedModel

Integers = npt.NDArray[np.int64]

# Modes of nodes, and what adds up leaves.
_AT_MOST, _IS_MEMBER = 0, 6
_SUM = 1
# Values that are taken for a row together: fewer cost more nodes, more cost memory.
_TOGETHER = 512
_FEWEST_TREES_TOGETHER = 2


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
        scores = base
        for leaves, _ in self._numbers_of_leaves(forest.n_outputs):
            taken = graph.cast(graph.node("Gather", [values, leaves]), "float64")
            scores = graph.node("Add", [scores, graph.node("ReduceSum", [taken, trees], keepdims=0)])
        return scores

    def _scattered_sums(self, base: str) -> str:
        """Return the sums of values that say which output they are for."""
        graph, forest = self.graph, self.served.forest
        values, outputs = leaf_pairs(self.served)
        width = values.shape[1]
        value_table = graph.constant(values, "leaf_values")
        output_table = graph.constant(np.maximum(outputs, 0), "leaf_outputs")
        scores = self._of_all_rows(base)
        # Scores are copied each time: as many values at a time as there are scores.
        for leaves, n_trees in self._numbers_of_leaves(width, max(_TOGETHER, forest.n_outputs)):
            shape = graph.constant(np.array([0, n_trees * width]), "shape")
            taken = graph.cast(graph.node("Gather", [value_table, leaves]), "float64")
            added = graph.node("Reshape", [taken, shape])
            places = graph.node("Reshape", [graph.node("Gather", [output_table, leaves]), shape])
            scores = graph.node("ScatterElements", [scores, places, added], axis=1, reduction="add")
        return scores

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
        return self.graph.node(
            "TreeEnsemble",
            [self.features.table],
            domain=ML_DOMAIN,
            n_targets=n_targets,
            aggregate_function=_SUM,
            leaf_weights=self.graph.tensor(weights, "leaf_weights"),
            leaf_targetids=targets.tolist(),
            **self._structure,
        )

    @cached_property
    def _structure(self) -> dict[str, Any]:
        """The attributes of the operator that say where each row goes."""
        forest, served = self.served.forest, self.served
        splits = np.flatnonzero(forest.left >= 0)
        by_category = served.splits_by_category[splits]
        missing_left = forest.missing_left[splits] != 0
        left = forest.node_begin[self._tree_of_node[splits]] + forest.left[splits]
        # "True" is at most the threshold, on the left; or in the set, where missing values do not go.
        true_is_left = ~(by_category & missing_left)
        true, false = np.where(true_is_left, left, left + 1), np.where(true_is_left, left + 1, left)
        roots = forest.node_begin[:-1]
        lone = roots[forest.left[roots] < 0]  # a tree of one leaf is a split that does not matter
        true, false = np.concatenate([true, lone]), np.concatenate([false, lone])
        place = np.empty(len(forest.left), dtype=np.int64)
        place[splits] = np.arange(len(splits))
        place[self._leaves] = np.arange(len(self._leaves))
        is_leaf = forest.left < 0
        root_places = place[roots]
        root_places[is_leaf[roots]] = len(splits) + np.arange(len(lone))
        without = np.zeros(len(lone))
        columns = self.features.column[forest.feature[splits]]
        tensor = self.graph.tensor
        structure = {
            "tree_roots": root_places.tolist(),
            "nodes_featureids": np.concatenate([columns, without]).astype(np.int64).tolist(),
            "nodes_modes": tensor(
                np.concatenate([np.where(by_category, _IS_MEMBER, _AT_MOST), without]).astype(np.uint8),
                "nodes_modes",
            ),
            "nodes_splits": tensor(
                np.concatenate([np.where(by_category, 0.0, forest.threshold[splits]), without]),
                "nodes_splits",
            ),
            "nodes_missing_value_tracks_true": np.concatenate([missing_left & ~by_category, without])
            .astype(np.int64)
            .tolist(),
            "nodes_truenodeids": place[true].tolist(),
            "nodes_falsenodeids": place[false].tolist(),
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
