"""Some trees of a forest, as a forest of their own."""

from __future__ import annotations

import numpy as np

from polyleaf.model.forest import Forest


def trees_of_rounds(forest: Forest, begin: int, end: int, best: int | None = None) -> Forest:
    """Return the trees of rounds [begin, end) as arrays of their own.

    Shares of the gain are kept where they are known to be those of these rounds: up to the `best` one.
    """
    first, last = begin * forest.trees_per_round, end * forest.trees_per_round
    low, high = (int(forest.node_begin[tree]) for tree in (first, last))
    nodes = slice(low, high)
    words = forest.category_begin[low : high + 1]
    value_begin = forest.value_begin[nodes]
    is_leaf = value_begin >= 0
    width = np.repeat(forest.tree_width[first:last], np.diff(forest.node_begin[first : last + 1]))
    begins = int(value_begin[is_leaf].min(initial=len(forest.values)))
    values = slice(begins, max(begins, int((value_begin + width)[is_leaf].max(initial=0))))
    keeps_gains = best is not None and begin == 0 and end > best
    return Forest(
        n_features=forest.n_features,
        n_outputs=forest.n_outputs,
        trees_per_round=forest.trees_per_round,
        base_score=forest.base_score.copy(),
        unit=forest.unit.copy(),
        node_begin=forest.node_begin[first : last + 1] - low,
        tree_output=forest.tree_output[first:last].copy(),
        tree_width=forest.tree_width[first:last].copy(),
        category_begin=words - words[0],
        category_bits=forest.category_bits[words[0] : words[-1]].copy(),
        value_begin=np.where(is_leaf, value_begin - begins, -1),
        values=forest.values[values].copy(),
        value_output=forest.value_output[values].copy(),
        gain_feature=forest.gain_feature if keeps_gains else None,
        output_gain=forest.output_gain if keeps_gains else None,
        feature=forest.feature[nodes].copy(),
        threshold=forest.threshold[nodes].copy(),
        missing_left=forest.missing_left[nodes].copy(),
        left=forest.left[nodes].copy(),
        gain=forest.gain[nodes].copy(),
        cover=forest.cover[nodes].copy(),
        count=forest.count[nodes].copy(),
    )
