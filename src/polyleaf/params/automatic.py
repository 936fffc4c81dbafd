"""What "auto" stands for: one small table, by what is learnt and how much there is to learn from.

docs/defaults.md has the measurements behind each number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from polyleaf.params.constraints import has_signs
from polyleaf.params.objectives import has_hessian_rule
from polyleaf.params.settings import Settings
from polyleaf.params.table import (
    AUTO_FEATURES,
    AUTO_FEW_ROUNDS_ROWS,
    AUTO_ROUNDS,
    AUTO_SHARED_OUTPUTS,
    AUTO_SKETCH_OUTPUTS,
    DEFAULT_SKETCH_SIZE,
    LABEL_GROUPS,
    LABELS_OF_A_LEAF,
    USUAL_DEPTH,
)


@dataclass(frozen=True)
class Size:
    """How trees of a loss are grown where nobody says how.

    Attributes
    ----------
    min_samples_leaf : int
        Rows in a leaf.
    sketches : tuple of (int, int)
        Numbers of outputs, ascending, from each of which on splits are found on so many numbers a row.
    larger_leaf : int or None
        Rows in a leaf where held-out rows prefer larger ones to those; None: nobody asks them.
    share_of_one : float
        Share of the rows that a round looks at, where there is one output, rows are few and nobody gives the
        number of rounds.
    """

    min_samples_leaf: int
    sketches: tuple[tuple[int, int], ...] = ()
    larger_leaf: int | None = None
    share_of_one: float = 1.0


_BY_OUTPUTS = ((5, 2), (AUTO_SKETCH_OUTPUTS, DEFAULT_SKETCH_SIZE))
_SIZES = {
    "squared_error": Size(3, ((3, 2),), larger_leaf=20, share_of_one=0.7),
    "cross_entropy": Size(5, _BY_OUTPUTS),
    "binary_cross_entropy": Size(20, _BY_OUTPUTS, share_of_one=0.7),
}
_USUAL_SIZE = Size(20)
_USUAL_RATE, _RATE_OF_MANY_ROWS, _RATE_OF_HASHED_LABELS = 0.05, 0.1, 0.3
# Parameters that may be "auto", but for the number of rounds, which is found in training; `sketch_size` comes
# with its sketch.
_NAMES = (
    "learning_rate",
    "max_depth",
    "min_samples_leaf",
    "subsample",
    "colsample_bytree",
    "sketch",
    "hessian",
    "bounded_influence",
)


def resolved(
    params: Mapping[str, Any], loss: str, n_outputs: int, n_rows: int, n_features: int
) -> dict[str, Any]:
    """Return the parameters that may be "auto", as they are used.

    Parameters
    ----------
    params : mapping
        Parameters by name, checked one by one already.
    loss : str
        The name of the loss.
    n_outputs, n_rows, n_features : int
        Of the problem, all shards together.
    """
    size = _SIZES.get(loss, _USUAL_SIZE)
    sketch, sketch_size = _sketch(params, size, n_outputs)
    chosen = {
        "n_estimators": AUTO_ROUNDS,
        "learning_rate": _rate(params, n_rows),
        "min_samples_leaf": size.min_samples_leaf,
        "max_depth": _depth(params, size, n_rows),
        "subsample": _share_of_rows(params, size, n_outputs, n_rows),
        "colsample_bytree": min(1.0, max(0.5, AUTO_FEATURES / n_features)),
        "sketch": sketch,
        "hessian": _hessian(params, loss, n_outputs),
        "bounded_influence": loss == "squared_error",
    }
    used = {
        name: value if params.get(name, "auto") == "auto" else params[name] for name, value in chosen.items()
    }
    hashed = params.get("label_space") is not None
    return {
        **used,
        "sketch_size": params["sketch_size"] or sketch_size,
        "sparse_leaves": min(LABELS_OF_A_LEAF, n_outputs)
        if hashed and params["sparse_leaves"] is None
        else params["sparse_leaves"],
    }


def with_larger_leaves(params: Mapping[str, Any], used: Settings, loss: str) -> Settings | None:
    """Return the settings with larger leaves that see all features; None: nothing is there to choose.

    Parameters
    ----------
    params : mapping
        As of :func:`resolved`, which `used` was made by.
    used : Settings
        With the usual leaves.
    loss : str
        The name of the loss.
    """
    size = _SIZES.get(loss, _USUAL_SIZE)
    if size.larger_leaf is None or params["min_samples_leaf"] != "auto":
        return None
    features = 1.0 if params["colsample_bytree"] == "auto" else used.colsample_bytree
    return replace(used, min_samples_leaf=size.larger_leaf, colsample_bytree=features)


def chosen_of(params: Mapping[str, Any], used: Settings) -> dict[str, Any]:
    """Return those of the resolved parameters that nobody gave."""
    names = [name for name in _NAMES if params.get(name) == "auto"]
    if params.get("sketch") == "auto" and used.sketch is not None and params.get("sketch_size") is None:
        names.append("sketch_size")
    if params.get("label_space") is not None and params["sparse_leaves"] is None:
        names.append("sparse_leaves")
    return {name: getattr(used, name) for name in names}


def _sketch(params: Mapping[str, Any], size: Size, n_outputs: int) -> tuple[str | None, int]:
    """Return the sketch of splits, None: none, and its size."""
    if params.get("label_space") is not None:
        return "random_projection", LABEL_GROUPS
    possible = (
        params["sparse_leaves"] is None
        and params["multi_strategy"] == "multi_output_tree"
        and params.get("hessian") != "exact"
        and not has_signs(params.get("monotone_constraints"))
    )
    wide = [width for least, width in size.sketches if n_outputs >= least]
    if params["sketch"] != "auto":
        return params["sketch"], DEFAULT_SKETCH_SIZE
    return ("random_projection", wide[-1]) if possible and wide else (None, DEFAULT_SKETCH_SIZE)


def _rate(params: Mapping[str, Any], n_rows: int) -> float:
    """Return the factor of each tree where nobody says."""
    if params.get("label_space") is not None:
        return _RATE_OF_HASHED_LABELS  # trees are deep, and models large
    return _USUAL_RATE if n_rows < AUTO_FEW_ROUNDS_ROWS else _RATE_OF_MANY_ROWS


def _share_of_rows(params: Mapping[str, Any], size: Size, n_outputs: int, n_rows: int) -> float:
    """Return the share of the rows that a round looks at where nobody says.

    Rounds that somebody has counted look at all of them: nothing is left to chance there.
    """
    possible = params["n_estimators"] == "auto" and params["sampling_method"] == "uniform"
    return size.share_of_one if possible and n_outputs == 1 and n_rows < AUTO_FEW_ROUNDS_ROWS else 1.0


def _depth(params: Mapping[str, Any], size: Size, n_rows: int) -> int:
    """Return how deep trees may be where nobody says.

    The more labels there are, the fewer rows have one: leaves must be small to tell them apart. Trees are
    never balanced, so that twice the depth of a balanced one with the smallest leaves is allowed.
    """
    if params.get("label_space") is None:
        return USUAL_DEPTH
    least = params["min_samples_leaf"]
    n_leaves = n_rows / (size.min_samples_leaf if least == "auto" else least)
    return max(USUAL_DEPTH, 2 * math.ceil(math.log2(max(n_leaves, 1))))


def _hessian(params: Mapping[str, Any], loss: str, n_outputs: int) -> str:
    """Return what stands for the Hessian where nobody says."""
    possible = (
        has_hessian_rule(loss)  # a callable's Hessian may be negative
        and params["sparse_leaves"] is None
        and params["multi_strategy"] == "multi_output_tree"
    )
    return "shared" if possible and n_outputs >= AUTO_SHARED_OUTPUTS else "diagonal"
