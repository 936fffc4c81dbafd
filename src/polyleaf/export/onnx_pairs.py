"""Trees as the older operator of ONNX, `TreeEnsembleRegressor` of ``ai.onnx.ml`` 3, which more programs run.

A leaf has any number of pairs (output, value). Sums are float64, but what comes out is float32; there are no
sets of categories.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.export.onnx_graph import ML_DOMAIN
from polyleaf.export.onnx_trees import Integers, OnnxTrees, leaf_pairs
from polyleaf.export.served_model import ServedModel


def refuse_for_pairs(served: ServedModel) -> None:
    """Raise ValueError for what this operator cannot say."""
    if served.splits_by_category.any():
        column = int(served.forest.feature[served.splits_by_category][0])
        name = column if served.feature_names is None else served.feature_names[column]
        raise ValueError(
            f"trees split column {name!r} by sets of categories, which ai.onnx.ml 3 does not have; use "
            "ml_opset=5."
        )
    if np.abs(served.base_in_units()).max() + _most_added(served).max() > np.finfo(np.float32).max:
        raise ValueError("raw scores may leave float32, which is what ai.onnx.ml 3 has; use ml_opset=5.")


class OnnxPairs(OnnxTrees):
    """The trees of a model with pairs of outputs and values in their leaves."""

    def raw_scores(self) -> str:
        """Return the name of the raw scores, float64 of shape (rows, outputs), of which float32 is left."""
        forest, graph = self.served.forest, self.graph
        if forest.n_trees == 0:
            return super().raw_scores()
        # What comes out is rounded. A base score that is large beside the trees is added afterwards, so that
        # it does not swallow them; any other before, so that rounding is relative to the sum.
        base = self.served.base_in_units()
        after = np.abs(base) >= 2 * _most_added(self.served)
        values, outputs = leaf_pairs(self.served)
        leaf, place = np.nonzero(outputs >= 0)
        scores = self._pairs(
            values[leaf, place].astype(np.float64), outputs[leaf, place], leaf, np.where(after, 0.0, base)
        )
        if after.any():
            late = graph.constant(np.where(after, base, 0.0)[np.newaxis], "base_score")
            scores = graph.node("Add", [scores, late])
        return self._in_units(scores)

    def leaf_nodes(self) -> str:
        """Return the name of the leaves, int64 of shape (rows, trees): nodes as `apply` numbers them."""
        forest = self.served.forest
        if forest.n_trees == 0:
            return super().leaf_nodes()
        number = self._leaves - forest.node_begin[self._tree_of_leaf]
        every = np.arange(len(self._leaves))
        found = self._pairs(number.astype(np.float64), self._tree_of_leaf, every, np.zeros(forest.n_trees))
        return self.graph.cast(found, "int64")

    def _pairs(self, weights: FloatArray, targets: Integers, leaf: Integers, base: FloatArray) -> str:
        """Return base plus the sums of weights for each target; `leaf` says which leaf each pair is in.

        The base is one more tree, of a leaf: onnxruntime forgets `base_values` of targets that no leaf of a
        row has.
        """
        tree, forest = self._tree_of_leaf[leaf], self.served.forest
        n_targets = len(base)
        sums = self.graph.node(
            "TreeEnsembleRegressor",
            [self.features.table],
            domain=ML_DOMAIN,
            n_targets=n_targets,
            target_treeids=[*tree.tolist(), *[forest.n_trees] * n_targets],
            target_nodeids=[*(self._leaves[leaf] - forest.node_begin[tree]).tolist(), *[0] * n_targets],
            target_ids=[*targets.tolist(), *range(n_targets)],
            target_weights_as_tensor=self.graph.tensor(np.concatenate([weights, base]), "target_weights"),
            **self._nodes,
        )
        return self.graph.cast(sums, "float64")

    @cached_property
    def _nodes(self) -> dict[str, Any]:
        """The attributes of the operator that say where each row goes; the last tree is that of the base."""
        forest = self.served.forest
        is_leaf = forest.left < 0
        left = np.where(is_leaf, 0, forest.left)
        feature = np.where(is_leaf, 0, forest.feature)
        return {
            "nodes_treeids": [*self._tree_of_node.tolist(), forest.n_trees],
            "nodes_nodeids": [*(np.arange(len(left)) - forest.node_begin[self._tree_of_node]).tolist(), 0],
            "nodes_featureids": [*np.where(is_leaf, 0, self.features.column[feature]).tolist(), 0],
            "nodes_modes": [*np.where(is_leaf, "LEAF", "BRANCH_LEQ").tolist(), "LEAF"],
            "nodes_values_as_tensor": self.graph.tensor(
                np.append(np.where(is_leaf, 0.0, forest.threshold), 0.0), "nodes_values"
            ),
            "nodes_truenodeids": [*left.tolist(), 0],
            "nodes_falsenodeids": [*np.where(is_leaf, 0, left + 1).tolist(), 0],
            "nodes_missing_value_tracks_true": [*np.where(is_leaf, 0, forest.missing_left != 0).tolist(), 0],
        }


def _most_added(served: ServedModel) -> FloatArray:
    """Return what the trees can add to each output at most, in units and in size."""
    values, outputs = leaf_pairs(served)
    largest = np.zeros(served.forest.n_outputs)
    there = outputs >= 0
    np.maximum.at(largest, outputs[there], np.abs(values[there]).astype(np.float64))
    return largest * served.forest.n_trees
