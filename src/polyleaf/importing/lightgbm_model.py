"""A model of LightGBM, from the parts of its text: trees of one output each."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.files.page import distinct_words
from polyleaf.importing.category_sets import CategorySplit, with_sets
from polyleaf.importing.fields import Fields, IntArray
from polyleaf.importing.foreign_model import ForeignModel
from polyleaf.importing.foreign_tree import ForeignTree
from polyleaf.importing.lightgbm_objectives import read_task
from polyleaf.importing.lightgbm_text import LightgbmText
from polyleaf.model.forest_checks import MOST_FEATURES, MOST_OUTPUTS

_MOST = 2**31 - 1
_LARGEST = float(np.finfo(np.float64).max)
# Cells up to here are 0 where zeros count as missing.
_ZERO = float(np.float32(1e-35))
_CATEGORICAL, _DEFAULT_LEFT = 1, 2
_NONE, _ZEROS, _NANS = 0, 1, 2  # what is missing


def read_lightgbm(parts: LightgbmText, best_iteration: int | None) -> ForeignModel:
    """Return the model that a text of LightGBM describes.

    Parameters
    ----------
    parts : LightgbmText
        The text, taken apart.
    best_iteration : int or None
        The round, from 0, that predictions go up to, which the text does not tell; None: the last.

    Raises
    ------
    ValueError
        When it is damaged, or of a kind that cannot be imported; the error names the field.
    """
    head = parts.head
    n_features = head.whole("max_feature_idx", 0, MOST_FEATURES - 1) + 1
    n_outputs = head.whole("num_tree_per_iteration", 1, MOST_OUTPUTS)
    objective = head.text("objective") if "objective" in head else None
    task, factor = read_task(objective, n_outputs, parts.parameters)
    if not parts.trees or len(parts.trees) % n_outputs != 0:
        raise ValueError(f"its {len(parts.trees)} trees do not fill rounds of {n_outputs}.")
    trees, splits = [], []
    for number, fields in enumerate(parts.trees):
        tree, of_tree = _tree(fields, number, n_features, number % n_outputs)
        trees.append(tree)
        splits += of_tree
    trees, categories = with_sets(trees, splits, _named_categories(parts, n_features))
    if parts.averages:
        last = len(trees) // n_outputs if best_iteration is None else best_iteration + 1
        trees, factor, best_iteration = trees[: last * n_outputs], factor / last, None
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused with the forest
        trees = [replace(tree, values=tree.values * factor) for tree in trees]
        trees, shifts = _centred(trees, n_outputs, all_rounds=parts.averages)
        base_score = shifts.sum(axis=0)
    return ForeignModel(
        task=task,
        n_features=n_features,
        base_score=base_score,
        trees=trees,
        best_iteration=best_iteration,
        feature_names=_feature_names(head, n_features),
        categories=categories,
        tree_shifts=shifts * len(shifts) if parts.averages else None,
    )


def _feature_names(head: Fields, n_features: int) -> tuple[str, ...] | None:
    """Return the names of the columns; those that LightGBM made up itself are none."""
    names = head.text("feature_names").split() if "feature_names" in head else []
    if not names or names == [f"Column_{number}" for number in range(n_features)]:
        return None
    return distinct_words(names, n_features, "feature_names")


# --- trees -------------------------------------------------------------------------------------------------


def _tree(tree: Fields, number: int, n_features: int, output: int) -> tuple[ForeignTree, list[CategorySplit]]:
    """Return a tree, without the sets of its splits by categories, and these splits.

    Splits come first among its nodes, then leaves; in the file a leaf is a negative child.
    """
    if "is_linear" in tree and tree.text("is_linear") != "0":
        raise ValueError(f"its {tree.where} has linear models in its leaves (linear_tree).")
    n_leaves = tree.whole("num_leaves", 1, _MOST)
    n_splits = n_leaves - 1
    values = tree.floats("leaf_value", n_leaves)
    if n_splits == 0:
        return _constant(number, values, output), []
    feature = tree.integers("split_feature", n_splits, 0, n_features - 1)
    # A split that tells missing values from all others has an infinite threshold.
    threshold = tree.floats("threshold", n_splits, for_infinity=_LARGEST)
    kind = tree.integers("decision_type", n_splits, 0, 15)
    left, right = (_children(tree, name, n_leaves) for name in ("left_child", "right_child"))
    missing_left = _missing_left(tree, threshold, kind)
    splits = _category_splits(tree, number, feature, threshold, kind)
    count = _counts(tree, n_leaves)
    found = ForeignTree(
        where=tree.where,
        left=np.concatenate([left, np.full(n_leaves, -1)]),
        right=np.concatenate([right, np.full(n_leaves, -1)]),
        feature=np.concatenate([feature, np.zeros(n_leaves, np.int64)]),
        threshold=np.concatenate([threshold, np.zeros(n_leaves)]),
        missing_left=np.concatenate([missing_left, np.zeros(n_leaves, bool)]),
        category_sets={},
        gain=np.concatenate([tree.gains("split_gain", n_splits), np.zeros(n_leaves)]),
        cover=count.astype(np.float64),
        count=count,
        values=values[:, np.newaxis],
        value_row=np.concatenate([np.zeros(n_splits, np.int64), np.arange(n_leaves)]),
        first_output=output,
    )
    if len(found.order()) < n_splits + n_leaves:
        raise ValueError(f"its {tree.where} has nodes that are not reached from its root.")
    return found, splits


def _constant(number: int, values: FloatArray, output: int) -> ForeignTree:
    """Return the tree of a single leaf."""
    one, nothing = np.full(1, -1), np.zeros(1)
    zero = np.zeros(1, np.int64)
    return ForeignTree(
        where=f"tree {number}",
        left=one,
        right=one,
        feature=zero,
        threshold=nothing,
        missing_left=np.zeros(1, bool),
        category_sets={},
        gain=nothing,
        cover=nothing,
        count=zero,
        values=values[:, np.newaxis],
        value_row=zero,
        first_output=output,
    )


def _children(tree: Fields, name: str, n_leaves: int) -> IntArray:
    """Return children as nodes: the splits, and then the leaves."""
    child = tree.integers(name, n_leaves - 1, -n_leaves, n_leaves - 2)
    return np.where(child < 0, n_leaves - 1 + ~child, child)


def _counts(tree: Fields, n_leaves: int) -> IntArray:
    """Return the training rows of the nodes: none where the file, of an old version, does not tell."""
    found = []
    for name, length in (("internal_count", n_leaves - 1), ("leaf_count", n_leaves)):
        found.append(tree.integers(name, length, 0, 2**62) if name in tree else np.zeros(length, np.int64))
    return np.concatenate(found)


def _missing_left(tree: Fields, threshold: FloatArray, kind: IntArray) -> Any:
    """Return where missing values go.

    Where nothing is missing, NaN counts as 0. Where zeros are missing, those next to 0 go with NaN: a split
    of polyleaf does so if they are on that side of the threshold anyway.
    """
    missing, is_number = kind >> 2, (kind & _CATEGORICAL) == 0
    if (missing > _NANS).any():
        raise tree.wrong("decision_type", "has a kind of missing values that does not exist")
    default_left = (kind & _DEFAULT_LEFT) != 0
    found = np.where(missing == _NONE, threshold >= 0, default_left)
    by_zeros = is_number & (missing == _ZEROS)
    agrees = np.where(default_left, threshold >= _ZERO, threshold < -_ZERO)
    if (by_zeros & ~agrees).any():
        raise ValueError(
            f"its {tree.where} has a split that sends zeros elsewhere than the numbers around them "
            "(zero_as_missing), which a split of polyleaf cannot."
        )
    return found & is_number  # categories that are missing, or in no set, go right


# --- categories --------------------------------------------------------------------------------------------


def _category_splits(
    tree: Fields, number: int, feature: IntArray, threshold: FloatArray, kind: IntArray
) -> list[CategorySplit]:
    """Return the splits by categories: those of the set go left, all others and missing ones right."""
    nodes = np.flatnonzero(kind & _CATEGORICAL)
    if len(nodes) == 0:
        return []
    n_sets = tree.whole("num_cat", 1, _MOST)
    words = tree.integers("cat_threshold", None, 0, 2**32 - 1).astype("<u4")
    bounds = tree.integers("cat_boundaries", n_sets + 1, 0, len(words))
    if bounds[0] != 0 or bounds[-1] != len(words) or (np.diff(bounds) < 0).any():
        raise tree.wrong("cat_boundaries", "does not ascend from 0 to the number of words in cat_threshold")
    which = threshold[nodes]
    if (which < 0).any() or (which >= n_sets).any() or (which != np.floor(which)).any():
        raise tree.wrong("threshold", f"names a set of categories that is none of the {n_sets}")
    if len(np.unique(which)) < len(which):
        raise tree.wrong("threshold", "names a set of categories twice")
    found = []
    for node, place in zip(nodes.tolist(), which.astype(np.int64).tolist(), strict=True):
        part = words[bounds[place] : bounds[place + 1]]
        codes = np.flatnonzero(np.unpackbits(part.view(np.uint8), bitorder="little"))
        found.append(
            CategorySplit(number, node, int(feature[node]), codes, set_goes_left=True, missing_left=False)
        )
    return found


def _named_categories(parts: LightgbmText, n_features: int) -> dict[int, list[object]]:
    """Return the values that the codes of the columns of a data frame stand for.

    The text has them in the order of the columns, but not which columns these are: they are those that are
    categorical features, if there are as many.
    """
    named = parts.pandas_categories
    if not named:
        return {}
    columns = _categorical_columns(parts, n_features)
    if len(columns) != len(named):
        raise ValueError(
            f"its pandas_categorical has the values of {len(named)} columns, but {len(columns)} features are "
            "categorical ones: which of them have these values cannot be told. (Ordered categories of pandas "
            "are a cause, or integers that were named in categorical_feature beside categorical columns.)"
        )
    return dict(zip(columns, named, strict=True))


def _categorical_columns(parts: LightgbmText, n_features: int) -> list[int]:
    listed = parts.parameters.get("categorical_feature", "")
    if re.fullmatch(r"\d{1,9}(,\d{1,9})*", listed):
        columns = sorted({int(number) for number in listed.split(",")})
        if columns[-1] >= n_features:
            raise ValueError(f"its categorical_feature names column {columns[-1]}, which does not exist.")
        return columns
    infos = parts.head.text("feature_infos").split() if "feature_infos" in parts.head else []
    return [number for number, info in enumerate(infos) if info[0] != "[" and info != "none"]


# --- base score --------------------------------------------------------------------------------------------


def _centred(
    trees: list[ForeignTree], n_outputs: int, *, all_rounds: bool
) -> tuple[list[ForeignTree], FloatArray]:
    """Return the trees, and what was taken out of the leaves of each round, of shape (rounds, outputs).

    LightGBM adds the base score to the leaves of the first round (to those of all rounds where predictions
    are means), where float32 would round the sum. Their mean, in float64, is the base score here.
    """
    shifts = np.zeros((len(trees) // n_outputs, n_outputs))
    found = list(trees)
    for number in range(len(trees) if all_rounds else n_outputs):
        tree = trees[number]
        weight = tree.cover[tree.left < 0]
        values = tree.values[tree.value_row[tree.left < 0], 0]
        mean = float(np.average(values, weights=weight if weight.sum() > 0 else None))
        if np.isfinite(mean) and np.abs(values - mean).max() < np.abs(values).max():
            shifts[divmod(number, n_outputs)] = mean
            found[number] = replace(tree, values=tree.values - mean)
    return found, shifts
