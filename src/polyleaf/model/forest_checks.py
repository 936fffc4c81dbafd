"""How the arrays of a forest are laid out, and the checks of arrays that a file says are those of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.category_values import MOST_CATEGORIES

Arrays = Mapping[str, npt.NDArray[Any]]

# Names of the arrays, their dtypes and what they run over. This is the model file's layout, too.
LAYOUT: dict[str, tuple[type[np.generic], str]] = {
    "base_score": (np.float64, "outputs"),
    "unit": (np.float64, "outputs"),
    "node_begin": (np.int64, "trees + 1"),
    "tree_output": (np.int32, "trees"),
    "tree_width": (np.int32, "trees"),
    "feature": (np.int32, "nodes"),
    "threshold": (np.float64, "nodes"),
    "missing_left": (np.uint8, "nodes"),
    "category_begin": (np.int64, "nodes + 1"),
    "category_bits": (np.uint32, "category words"),
    "left": (np.int32, "nodes"),
    "gain": (np.float64, "nodes"),
    "cover": (np.float64, "nodes"),
    "count": (np.int64, "nodes"),
    "value_begin": (np.int64, "nodes"),
    "values": (np.float32, "values"),
    "value_output": (np.int32, "sparse values"),
    "shape": (np.int64, "shape"),
}
# Files of format version 1 do not have these: their trees have no splits by categories.
CATEGORY_ARRAYS = ("category_begin", "category_bits")
# Arrays that a forest may do without, all or none of them.
OPTIONAL: dict[str, tuple[type[np.generic], str]] = {
    "gain_feature": (np.int32, "gain features"),
    "output_gain": (np.float32, "output gains"),
}
_MOST_FEATURES = 2**26
_MOST_CATEGORY_WORDS = -(-MOST_CATEGORIES // 32)
_LARGEST_UNIT = 2.0**1000


def check_arrays(arrays: Arrays) -> None:
    """Raise ValueError unless the arrays are those of a forest in which no prediction can go astray."""
    _check_layout(arrays)
    _check_values(arrays)
    _check_trees(arrays)
    _check_nodes(arrays)
    _check_categories(arrays)
    _check_leaves(arrays)
    if "gain_feature" in arrays:
        _check_output_gains(arrays)


def _expect(condition: Any, problem: str) -> None:
    if not np.all(condition):
        raise ValueError(f"not a forest: {problem}")


def _check_layout(arrays: Arrays) -> None:
    """Names, dtypes and sizes."""
    layout = LAYOUT | (OPTIONAL if not OPTIONAL.keys().isdisjoint(arrays) else {})
    _expect(set(arrays) == set(layout), f"expected the arrays {sorted(layout)}, got {sorted(arrays)}")
    for name, (dtype, _) in layout.items():
        _expect(
            arrays[name].ndim == 1 and arrays[name].dtype == dtype,
            f"{name} must be a vector of {dtype.__name__}",
        )
    _expect(len(arrays["shape"]) == 3, "shape must hold 3 numbers")
    n_features, n_outputs, trees_per_round = (int(v) for v in arrays["shape"])
    _expect(1 <= n_features <= _MOST_FEATURES and 1 <= n_outputs < 2**31, "the number of features or outputs")
    n_trees, n_nodes, n_values = (len(arrays[name]) for name in ("tree_output", "feature", "values"))
    n_gain_features = len(arrays.get("gain_feature", ()))
    sizes = {
        "outputs": n_outputs,
        "trees": n_trees,
        "trees + 1": n_trees + 1,
        "nodes": n_nodes,
        "nodes + 1": n_nodes + 1,
        "category words": len(arrays["category_bits"]),
        "values": n_values,
        "sparse values": n_values if len(arrays["value_output"]) > 0 else 0,
        "shape": 3,
        "gain features": n_gain_features,
        "output gains": n_gain_features * n_outputs,
    }
    for name, (_, over) in layout.items():
        _expect(
            len(arrays[name]) == sizes[over], f"{name} has {len(arrays[name])} values, expected {sizes[over]}"
        )
    _expect(
        trees_per_round in (1, n_outputs) and n_trees % trees_per_round == 0, "trees do not fill whole rounds"
    )


def _check_values(arrays: Arrays) -> None:
    """Numbers that are added up or compared."""
    unit, value_output, n_outputs = arrays["unit"], arrays["value_output"], arrays["shape"][1]
    _expect(
        np.isfinite(unit) & (unit >= 1 / _LARGEST_UNIT) & (unit <= _LARGEST_UNIT), "a unit is out of range"
    )
    _expect(np.frexp(unit)[0] == 0.5, "a unit is not a power of two")
    _expect(np.isfinite(arrays["base_score"]), "a base score is not finite")
    _expect(np.isfinite(arrays["values"]), "a leaf value is not finite")
    _expect(
        (value_output >= 0) & (value_output < n_outputs), "a value belongs to an output that does not exist"
    )
    _expect(~np.isnan(arrays["threshold"]), "a threshold is NaN")
    _expect(np.isfinite(arrays["gain"]) & np.isfinite(arrays["cover"]), "a gain or cover is not finite")


def _check_trees(arrays: Arrays) -> None:
    """Where each tree begins, and the outputs it adds to."""
    begin = arrays["node_begin"]
    _expect(begin[0] == 0 and begin[-1] == len(arrays["feature"]), "the trees do not cover the nodes")
    _expect(np.diff(begin) > 0, "a tree has no nodes")
    output, width = arrays["tree_output"].astype(np.int64), arrays["tree_width"].astype(np.int64)
    _expect(
        (output >= 0) & (width >= 1) & (output + width <= arrays["shape"][1]),
        "a tree adds to outputs that do not exist",
    )
    _expect(
        len(arrays["value_output"]) == 0 or output == 0,
        "a tree of sparse leaves begins at another output than the first",
    )


def _check_nodes(arrays: Arrays) -> None:
    """Children and features of the splits."""
    begin, feature = arrays["node_begin"], arrays["feature"]
    size = np.repeat(np.diff(begin), np.diff(begin))
    position = np.arange(len(feature)) - np.repeat(begin[:-1], np.diff(begin))
    left = arrays["left"].astype(np.int64)
    inner = left >= 0
    # Children after their parent: every path ends.
    _expect((left[inner] > position[inner]) & (left[inner] + 1 < size[inner]), "a child is out of place")
    _expect(
        (feature[inner] >= 0) & (feature[inner] < arrays["shape"][0]),
        "a split asks for a feature that does not exist",
    )


def _check_categories(arrays: Arrays) -> None:
    """The sets of the splits by categories."""
    begin, n_words = arrays["category_begin"], len(arrays["category_bits"])
    _expect((begin >= 0) & (begin <= n_words), "a set of categories is out of range")
    set_size = np.diff(begin)
    _expect(
        begin[0] == 0 and begin[-1] == n_words and np.all(set_size >= 0),
        "the sets of categories do not cover their words",
    )
    _expect(set_size[arrays["left"] < 0] == 0, "a leaf has a set of categories")
    _expect(set_size <= _MOST_CATEGORY_WORDS, f"a set of categories goes beyond {MOST_CATEGORIES - 1}")


def _check_leaves(arrays: Arrays) -> None:
    """Where the values of each leaf are."""
    leaf = arrays["left"] < 0
    first = arrays["value_begin"][leaf]
    width = np.repeat(arrays["tree_width"].astype(np.int64), np.diff(arrays["node_begin"]))[leaf]
    # Written so that no hostile number can overflow.
    _expect((first >= 0) & (first <= len(arrays["values"]) - width), "a leaf's values are out of range")


def _check_output_gains(arrays: Arrays) -> None:
    """The outputs' shares of the gains."""
    feature = arrays["gain_feature"]
    _expect((feature >= 0) & (feature < arrays["shape"][0]), "a gain is of a feature that does not exist")
    _expect(np.diff(feature) > 0, "the features of the gains do not ascend")
    _expect(np.isfinite(arrays["output_gain"]), "an output's gain is not finite")
