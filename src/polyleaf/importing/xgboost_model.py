"""A model of XGBoost, from its document (JSON or UBJSON): trees of vector leaves, and of one output each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.files.page import distinct_words
from polyleaf.importing.category_sets import CategorySplit, with_sets
from polyleaf.importing.fields import Fields, IntArray, number_list
from polyleaf.importing.foreign_model import ForeignModel
from polyleaf.importing.foreign_tree import ForeignTree
from polyleaf.importing.thresholds import largest_below
from polyleaf.importing.xgboost_categories import read_category_splits, read_named_categories
from polyleaf.importing.xgboost_objectives import raw_base_score, read_task
from polyleaf.model.forest_checks import MOST_FEATURES, MOST_OUTPUTS

_MOST_NODES = 2**31 - 2


def read_xgboost(document: Any) -> ForeignModel:
    """Return the model that a document of XGBoost describes.

    Raises
    ------
    ValueError
        When it is none, is damaged, or is of a kind that cannot be imported; the error names the field.
    """
    whole = Fields(document)
    version = tuple(whole.integers("version", None, 0, 2**31 - 1).tolist()) if "version" in whole else ()
    learner = whole.inner("learner")
    booster = learner.inner("gradient_booster")
    _refuse_other_boosters(booster)
    model = booster.inner("model")
    shape = learner.inner("learner_model_param")
    n_features = shape.whole("num_feature", 1, MOST_FEATURES)
    n_outputs = _n_outputs(shape)
    task, margin = read_task(learner.inner("objective"), n_outputs, version)

    entries = model.list("trees")
    trees, splits = [], []
    for number, entry in enumerate(entries):
        tree, of_tree = _tree(Fields(entry, f"tree {number}"), number, n_features, n_outputs)
        trees.append(tree)
        splits += of_tree
    trees, categories = with_sets(trees, splits, read_named_categories(model, n_features))
    trees, parallel = _in_rounds(model, trees, n_outputs)
    if not trees:
        raise ValueError("it has no trees.")
    rounds = len(trees) // (1 if trees[0].width == n_outputs else n_outputs)
    return ForeignModel(
        task=task,
        n_features=n_features,
        base_score=raw_base_score(_base_score(shape, n_outputs), margin),
        trees=trees,
        best_iteration=_best_iteration(learner, parallel, rounds),
        feature_names=_feature_names(learner, n_features),
        categories=categories,
    )


# --- what is not a tree ------------------------------------------------------------------------------------


def _refuse_other_boosters(booster: Fields) -> None:
    name = booster.text("name")
    if name != "gbtree":
        raise ValueError(f"its booster is {name!r:.40}; trees without dropout ('gbtree') can be imported.")
    if "weight_drop" in booster.inner("model"):
        raise ValueError(
            "its trees have weights (weight_drop): it was trained with dropout (DART), which is not imported."
        )


def _n_outputs(shape: Fields) -> int:
    n_classes = shape.whole("num_class", 0, MOST_OUTPUTS)
    n_targets = shape.whole("num_target", 1, MOST_OUTPUTS) if "num_target" in shape else 1
    if n_classes > 1 and n_targets > 1:
        raise ValueError(f"it has {n_classes} classes of {n_targets} targets; one of them must be 1.")
    return max(n_classes, n_targets)


def _base_score(shape: Fields, n_outputs: int) -> FloatArray:
    found = number_list(shape.text("base_score"), "base_score")
    if len(found) not in (1, n_outputs):
        raise ValueError(f"its base_score has {len(found)} values for {n_outputs} outputs.")
    with np.errstate(over="ignore"):
        base = np.broadcast_to(np.array(found, dtype=np.float32), (n_outputs,)).astype(np.float64)
    if not np.isfinite(base).all():
        raise ValueError("its base_score is beyond float32.")
    return base


def _feature_names(learner: Fields, n_features: int) -> tuple[str, ...] | None:
    names = learner.list("feature_names") if "feature_names" in learner else []
    return distinct_words(names, n_features, "feature_names") if names else None


def _best_iteration(learner: Fields, parallel: int, n_rounds: int) -> int | None:
    """Return the round that early stopping found; a round of several trees became as many rounds."""
    attributes = learner.inner("attributes") if "attributes" in learner else Fields({})
    if "best_iteration" not in attributes:
        return None
    # A model that was cut keeps what was said of the whole.
    best = (attributes.whole("best_iteration", 0, _MOST_NODES) + 1) * parallel - 1
    return best if best < n_rounds else None


# --- trees -------------------------------------------------------------------------------------------------


def _tree(
    tree: Fields, number: int, n_features: int, n_outputs: int
) -> tuple[ForeignTree, list[CategorySplit]]:
    """Return a tree, without the sets of its splits by categories, and these splits."""
    shape = tree.inner("tree_param")
    n_nodes = shape.whole("num_nodes", 1, _MOST_NODES)
    width = max(1, shape.whole("size_leaf_vector", 0, MOST_OUTPUTS))
    if width not in (1, n_outputs):
        raise tree.wrong("size_leaf_vector", f"is {width}, but there are {n_outputs} outputs")
    left = tree.integers("left_children", n_nodes, -1, n_nodes - 1)
    right = tree.integers("right_children", n_nodes, -1, _MOST_NODES)
    # Of leaves and of nodes that were pruned away, this means nothing.
    feature = tree.integers("split_indices", n_nodes, 0, 2**32 - 1)
    if (feature[left >= 0] >= n_features).any():
        raise tree.wrong("split_indices", f"asks for a feature beyond the {n_features} there are")
    splits = read_category_splits(tree, number, n_nodes)
    has_vectors = width > 1 or "leaf_weights" in tree
    # Thresholds, and values of leaves; elsewhere it may be NaN.
    needed = (left >= 0) | (not has_vectors)
    needed[list(splits)] &= left[list(splits)] < 0
    condition = tree.float32s("split_conditions", n_nodes, needed)
    values, rows = condition[:, np.newaxis], np.arange(n_nodes)
    if has_vectors:
        values, rows = _vector_leaves(tree, left, right, width)
    found = ForeignTree(
        where=f"tree {number}",
        left=left,
        right=right,
        feature=feature,
        threshold=largest_below(condition),
        missing_left=tree.integers("default_left", n_nodes, 0, 1) == 1,
        category_sets={},
        gain=_statistic(tree, "loss_changes", n_nodes, width),
        cover=_statistic(tree, "sum_hessian", n_nodes, width),
        count=np.zeros(n_nodes, np.int64),  # XGBoost keeps none
        values=values,
        value_row=rows,
        first_output=0,
    )
    return found, [split for node, split in splits.items() if left[node] >= 0]


def _statistic(tree: Fields, name: str, n_nodes: int, width: int) -> FloatArray:
    """Return what was noted of the nodes in training; files with vector leaves did not have it up to 3.0."""
    if width > 1 and name not in tree:
        return np.zeros(n_nodes)
    return tree.gains(name, n_nodes).astype(np.float32).astype(np.float64)


def _vector_leaves(tree: Fields, left: IntArray, right: IntArray, width: int) -> tuple[FloatArray, IntArray]:
    """Return what the leaves add, and which row of it each of them has."""
    if "leaf_weights" not in tree:  # before 3.1, all nodes had weights
        weights = tree.float32s("base_weights", len(left) * width)
        return weights.reshape(len(left), width), np.arange(len(left))
    weights = tree.float32s("leaf_weights", None)
    n_leaves, rest = divmod(len(weights), width)
    if rest > 0:
        raise tree.wrong("leaf_weights", f"has {len(weights)} values, no multiple of {width}")
    # The right child of a leaf is the number of its weights.
    number = right[left < 0]
    if (number < 0).any() or (number >= n_leaves).any():
        raise tree.wrong("right_children", f"has a leaf without weights, of which there are {n_leaves}")
    if len(np.unique(number)) < len(number):
        raise tree.wrong("right_children", "has two leaves of the same weights")
    return weights.reshape(n_leaves, width), right


def _in_rounds(model: Fields, trees: list[ForeignTree], n_outputs: int) -> tuple[list[ForeignTree], int]:
    """Return the trees such that each round has one for all outputs, or one for each; and how many were one.

    A round of XGBoost has `num_parallel_tree` times as many, output after output.
    """
    shape = model.inner("gbtree_model_param")
    # Before 1.4 it was not told, and 0 is 1.
    parallel = shape.whole("num_parallel_tree", 0, 2**31 - 1) if "num_parallel_tree" in shape else 1
    parallel = max(1, parallel)
    outputs = model.integers("tree_info", len(trees), 0, max(n_outputs - 1, 0)).tolist()
    vectors = {tree.width == n_outputs for tree in trees}
    if len(vectors) > 1:
        raise ValueError("some of its trees have all outputs in their leaves, and others one.")
    if vectors != {False}:
        if any(outputs):
            raise ValueError("its tree_info says that a tree is for one output, but its leaves have all.")
        return trees, parallel
    size = n_outputs * parallel
    if len(trees) % size != 0:
        raise ValueError(f"its {len(trees)} trees do not fill rounds of {size}.")
    ordered = []
    for begin in range(0, len(trees), size):
        if outputs[begin : begin + size] != [output for output in range(n_outputs) for _ in range(parallel)]:
            raise ValueError(f"its tree_info has trees {begin} to {begin + size - 1} out of order.")
        ordered += [
            replace(trees[begin + output * parallel + k], first_output=output)
            for k in range(parallel)
            for output in range(n_outputs)
        ]
    return ordered, parallel
