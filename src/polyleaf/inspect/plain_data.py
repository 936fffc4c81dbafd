"""A model as plain data that JSON can hold, from which anyone can compute its raw scores."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from polyleaf.inspect.named_trees import NamedTrees
from polyleaf.params.table import EstimatorKind

FORMAT_NAME = "polyleaf trees"
FORMAT_VERSION = 1


def as_plain_data(trees: NamedTrees, estimator: EstimatorKind) -> dict[str, Any]:
    """Return the format of `docs/trees-as-data.md`, of all rounds of these trees."""
    forest, model = trees.forest, trees.model
    base = model.coding.in_order_of_y(forest.base_score)
    return {
        "format": FORMAT_NAME,
        "version": FORMAT_VERSION,
        "estimator": estimator,
        "objective": model.loss,
        "features": [
            {
                "name": name,
                "categories": list(model.categories[j].values) if j in model.categories else None,
            }
            for j, name in enumerate(trees.features)
        ],
        "outputs": list(trees.outputs),
        "base_score": base.tolist(),
        "trees": [_tree(trees, tree) for tree in range(forest.n_trees)],
    }


def _tree(trees: NamedTrees, tree: int) -> dict[str, Any]:
    forest = trees.forest
    begin, end = forest.node_begin[tree : tree + 2].tolist()
    return {
        "tree": tree,
        "round": tree // forest.trees_per_round,
        "nodes": [
            _leaf(trees, node, begin) if forest.left[node] < 0 else _split(trees, node, begin)
            for node in range(begin, end)
        ],
    }


def _split(trees: NamedTrees, node: int, begin: int) -> dict[str, Any]:
    forest, left = trees.forest, int(trees.forest.left[node])
    by_category = trees.splits_by_categories(node)
    threshold = float(forest.threshold[node])
    return {
        "node": node - begin,
        "feature": int(forest.feature[node]),
        **(
            {"categories": trees.categories(node)[0]}
            if by_category
            else {"threshold": threshold if math.isfinite(threshold) else str(threshold)}
        ),
        "missing": "left" if forest.missing_left[node] else "right",
        "left": left,
        "right": left + 1,
        "gain": float(forest.gain[node]),
        "cover": float(forest.cover[node]),
        "count": int(forest.count[node]),
    }


def _leaf(trees: NamedTrees, node: int, begin: int) -> dict[str, Any]:
    places, values = trees.leaf(node)
    return {
        "node": node - begin,
        "cover": float(trees.forest.cover[node]),
        "count": int(trees.forest.count[node]),
        **({} if _all(places, len(trees.outputs)) else {"outputs": places.tolist()}),
        "values": values.tolist(),
    }


def _all(places: Any, n_outputs: int) -> bool:
    """Whether these are all outputs, in their order."""
    return len(places) == n_outputs and bool((places == np.arange(n_outputs)).all())
