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
MOST_FEATURES = 2**26
MOST_OUTPUTS = 2**24
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


def check_extent(n_features: int, n_outputs: int) -> None:
    """Raise ValueError for more features or outputs than a model may have."""
    for count, most, word in ((n_features, MOST_FEATURES, "features"), (n_outputs, MOST_OUTPUTS, "outputs")):
        if not 1 <= count <= most:
            raise ValueError(f"{count} {word}; a model has at least 1 and at most {most:,}.")


def check_sizes(lengths: Mapping[str, int], n_outputs: int) -> None:
    """Raise ValueError unless arrays of these lengths, by their names, could be those of a forest.

    All numbers are Python's own: none can overflow.
    """
    layout = LAYOUT | (OPTIONAL if not OPTIONAL.keys().isdisjoint(lengths) else {})
    needed = set(layout) - (
        set() if any(name in lengths for name in CATEGORY_ARRAYS) else set(CATEGORY_ARRAYS)
    )
    _expect(set(lengths) == needed, f"expected the arrays {sorted(needed)}, got {sorted(lengths)}")
    check_extent(1, n_outputs)
    n_trees, n_nodes, n_values = (lengths[name] for name in ("tree_output", "feature", "values"))
    n_words = lengths.get("category_bits", 0)
    n_gain_features = lengths.get("gain_feature", 0)
    sizes = {
        "outputs": n_outputs,
        "trees": n_trees,
        "trees + 1": n_trees + 1,
        "nodes": n_nodes,
        "nodes + 1": n_nodes + 1,
        "category words": n_words,
        "values": n_values,
        "sparse values": n_values if lengths["value_output"] > 0 else 0,
        "shape": 3,
        "gain features": n_gain_features,
        "output gains": n_gain_features * n_outputs,
    }
    for name, length in lengths.items():
        expected = sizes[layout[name][1]]
        _expect(length == expected, f"{name} has {length} values, expected {expected}")
    # A few nodes cannot need much more.
    _expect(n_trees <= n_nodes, f"{n_trees} trees of {n_nodes} nodes")
    _expect(n_values <= n_nodes * n_outputs, f"{n_values} values for {n_nodes} nodes of {n_outputs} outputs")
    _expect(n_words <= n_nodes * _MOST_CATEGORY_WORDS, f"{n_words} words of categories for {n_nodes} nodes")
    _expect(n_gain_features <= n_nodes, f"gains of {n_gain_features} features for {n_nodes} nodes")


def _check_layout(arrays: Arrays) -> None:
    """Names, dtypes and sizes."""
    layout = LAYOUT | OPTIONAL
    for name, array in arrays.items():
        _expect(name in layout, f"there is no array {name!r:.80}")
        dtype = layout[name][0]
        _expect(array.ndim == 1 and array.dtype == dtype, f"{name} must be a vector of {dtype.__name__}")
    _expect(len(arrays.get("shape", ())) == 3, "shape must hold 3 numbers")
    n_features, n_outputs, trees_per_round = (int(v) for v in arrays["shape"])
    check_sizes({name: len(array) for name, array in arrays.items()}, n_outputs)
    _expect(1 <= n_features <= MOST_FEATURES, f"{n_features} features; at most {MOST_FEATURES:,} are allowed")
    _expect(
        trees_per_round in (1, n_outputs) and len(arrays["tree_output"]) % trees_per_round == 0,
        "trees do not fill whole rounds",
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
    begin, n_nodes = arrays["node_begin"], len(arrays["feature"])
    # Ranges first: differences of hostile numbers wrap around.
    _expect((begin >= 0) & (begin <= n_nodes), "a tree begins outside of the nodes")
    _expect(begin[0] == 0 and begin[-1] == n_nodes, "the trees do not cover the nodes")
    _expect(begin[:-1] < begin[1:], "a tree has no nodes")
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
    _expect(arrays["value_begin"][~leaf] == -1, "a split has values")


def _check_output_gains(arrays: Arrays) -> None:
    """The outputs' shares of the gains."""
    feature = arrays["gain_feature"]
    _expect((feature >= 0) & (feature < arrays["shape"][0]), "a gain is of a feature that does not exist")
    _expect(feature[:-1] < feature[1:], "the features of the gains do not ascend")
    _expect(np.isfinite(arrays["output_gain"]), "an output's gain is not finite")
