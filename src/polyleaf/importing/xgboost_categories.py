"""The categories of an XGBoost model: those of a data frame are in the file, those of arrays are codes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from polyleaf.importing.category_sets import CategorySplit
from polyleaf.importing.fields import Fields

_LARGEST_CODE = 2**24 - 1  # float32 has all integers up to here


def read_named_categories(model: Fields, n_features: int) -> dict[int, list[object]]:
    """Return the values that the codes of each categorical column stand for, where the model has them.

    Raises
    ------
    ValueError
        When they are malformed.
    """
    if "cats" not in model:  # before 3.1
        return {}
    entries = model.inner("cats").list("enc")
    if entries and len(entries) != n_features:
        raise ValueError(f"its cats has {len(entries)} columns, but the model has {n_features}.")
    found: dict[int, list[object]] = {}
    for feature, entry in enumerate(entries):
        column = Fields(entry, f"cats of column {feature}")
        values: list[object] = [*_words(column)] if "offsets" in column else column.list("values")
        if values:
            found[feature] = values
    return found


def _words(column: Fields) -> list[str]:
    """Return words that stand one behind the other."""
    text = column.integers("values", None, -128, 255).astype(np.uint8).tobytes()
    ends = column.integers("offsets", None, 0, len(text))
    if (np.diff(ends) < 0).any():
        raise column.wrong("offsets", "does not ascend")
    try:
        return [text[begin:end].decode() for begin, end in pairwise(ends.tolist())]
    except UnicodeDecodeError:
        raise column.wrong("values", "holds a word that is no UTF-8") from None


def read_category_splits(tree: Fields, number: int, n_nodes: int) -> dict[int, CategorySplit]:
    """Return the splits by categories of a tree, by the number of the node.

    Those of the set go right, and all others left; features and missing values are told by other fields.
    """
    if "split_type" not in tree:  # before 1.3
        return {}
    kinds = tree.integers("split_type", n_nodes, 0, 1)
    nodes = tree.integers("categories_nodes", None, 0, n_nodes - 1)
    codes = tree.integers("categories", None, 0, _LARGEST_CODE)
    begins = tree.integers("categories_segments", len(nodes), 0, len(codes))
    sizes = tree.integers("categories_sizes", len(nodes), 0, len(codes))
    features = tree.integers("split_indices", n_nodes, 0, 2**31 - 1)
    missing_left = tree.integers("default_left", n_nodes, 0, 1)
    if len(np.unique(nodes)) < len(nodes):
        raise tree.wrong("categories_nodes", "has a node twice")
    if (begins + sizes > len(codes)).any():
        raise tree.wrong("categories_sizes", "goes beyond the categories")
    if int(sizes.sum()) > len(codes):  # or few codes would be many sets
        raise tree.wrong("categories_sizes", "counts a category twice")
    if not np.array_equal(np.sort(nodes), np.flatnonzero(kinds == 1)):
        raise tree.wrong("categories_nodes", "are not the nodes of split_type 1")
    return {
        node: CategorySplit(
            tree=number,
            node=node,
            feature=int(features[node]),
            codes=codes[begin : begin + size],
            set_goes_left=False,
            missing_left=bool(missing_left[node]),
        )
        for node, begin, size in zip(nodes.tolist(), begins.tolist(), sizes.tolist(), strict=True)
    }
