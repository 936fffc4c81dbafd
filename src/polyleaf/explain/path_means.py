"""What trees predict on average where some features are set: one walk down each tree, for all outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.explain.routing import goes_left
from polyleaf.model.forest import Forest

Carried = TypeVar("Carried")
# A node, and what is carried to it: what is carried to its children, None where nothing is.
Split = Callable[[int, Carried], "tuple[Carried | None, Carried | None]"]
Rows = npt.NDArray[np.intp]


def shares_of_rows(
    forest: Forest,
    n_trees: int,
    chosen: Sequence[int],
    blocks: Iterable[tuple[slice, Array]],
    weight: FloatArray | None,
) -> FloatArray:
    """Return, per node, the share of the rows that reach it where splits on `chosen` let them go both ways.

    Parameters
    ----------
    forest : Forest
        The trees.
    n_trees : int
        How many of them count.
    chosen : sequence of int
        Features that are not asked of the rows.
    blocks : iterable of (slice, ndarray)
        Some rows at a time: which ones, and their `forest.used_features`.
    weight : float64 ndarray or None
        Of the rows.
    """
    sums = np.zeros(len(forest.left))
    place = {int(feature): column for column, feature in enumerate(forest.used_features)}
    total = 0.0
    for rows, block in blocks:
        columns = [np.ascontiguousarray(column, dtype=np.float64) for column in block.T]
        own = np.ones(len(block)) if weight is None else weight[rows]
        total += float(own.sum())

        def split(
            node: int, these: Rows, columns: list[FloatArray] = columns
        ) -> tuple[Rows | None, Rows | None]:
            feature = int(forest.feature[node])
            if feature in chosen:
                return these, these
            left = goes_left(forest, node, columns[place[feature]].take(these))
            sides = these[left], these[~left]
            return tuple(side if len(side) > 0 else None for side in sides)  # type: ignore[return-value]

        everyone = np.arange(len(block))
        for tree in range(n_trees):
            for leaf, reached in _leaves(forest, tree, everyone, split):
                sums[leaf] += float(own[reached].sum())
    return sums / total


def shares_of_cover(forest: Forest, n_trees: int, chosen: Sequence[int]) -> FloatArray:
    """Return the same by the weights of the training rows: each split shares out what comes to it.

    Where neither child has any, by their numbers of rows; without these, a half each.
    """
    shares = np.zeros(len(forest.left))

    def split(node: int, share: float) -> tuple[float | None, float | None]:
        if int(forest.feature[node]) in chosen:
            return share, share
        left = _first_of_tree(forest, node) + int(forest.left[node])
        for parts in (forest.cover[left : left + 2], forest.count[left : left + 2]):
            if parts.sum() > 0:
                of_left = float(parts[0] / parts.sum())
                return share * of_left, share * (1.0 - of_left)
        return 0.5 * share, 0.5 * share

    for tree in range(n_trees):
        for leaf, share in _leaves(forest, tree, 1.0, split):
            shares[leaf] = share
    return shares


def path_means(
    forest: Forest,
    n_trees: int,
    chosen: Sequence[int],
    codes: Sequence[FloatArray],
    shares: FloatArray,
    outputs: npt.NDArray[np.intp],
) -> FloatArray:
    """Return mean raw scores where the chosen features have some values, of shape (*points, outputs).

    A leaf counts for a point if its values pass all splits on the chosen features on the way to the leaf, by
    the leaf's share. The points are all combinations of the codes of the features.
    """
    sums = np.zeros((*map(len, codes), len(outputs)))

    def split(node: int, masks: tuple[Any, ...]) -> tuple[Any, Any]:
        feature = int(forest.feature[node])
        if feature not in chosen:
            return masks, masks
        which = list(chosen).index(feature)
        left = goes_left(forest, node, codes[which])
        sides = []
        for side in (left, ~left):
            passing = masks[which] & side
            sides.append((*masks[:which], passing, *masks[which + 1 :]) if passing.any() else None)
        return sides[0], sides[1]

    everything = tuple(np.ones(len(one), dtype=bool) for one in codes)
    for tree in range(n_trees):
        found = [
            (leaf, masks) for leaf, masks in _leaves(forest, tree, everything, split) if shares[leaf] > 0
        ]
        if not found:
            continue
        leaves = np.array([leaf for leaf, _ in found])
        columns, values = leaf_values(forest, tree, leaves, outputs)
        first = np.array([masks[0] for _, masks in found]).T * shares[leaves]
        if len(codes) == 1:
            sums[:, columns] += first @ values
            continue
        second = np.array([masks[1] for _, masks in found]).T
        for point, passing in enumerate(first):
            sums[point][:, columns] += (second * passing) @ values
    return sums * forest.unit[outputs] + forest.base_score[outputs]


def _leaves(
    forest: Forest, tree: int, carried: Carried, split: Split[Carried]
) -> Iterator[tuple[int, Carried]]:
    """Yield the leaves of a tree, counted in the forest, and what is carried to them."""
    root = int(forest.node_begin[tree])
    stack = [(root, carried)]
    while stack:
        node, what = stack.pop()
        left = int(forest.left[node])
        if left < 0:
            yield node, what
            continue
        for side, own in enumerate(split(node, what)):
            if own is not None:
                stack.append((root + left + side, own))


def _first_of_tree(forest: Forest, node: int) -> int:
    return int(forest.node_begin[np.searchsorted(forest.node_begin, node, side="right") - 1])


def leaf_values(
    forest: Forest, tree: int, leaves: npt.NDArray[np.intp], outputs: npt.NDArray[np.intp]
) -> tuple[Any, Any]:
    """Return which of the outputs a tree adds to, and the values of its leaves for these, in units.

    The values are an array of shape (leaves, outputs it adds to), or a sparse one where leaves are sparse.
    """
    width, begin = int(forest.tree_width[tree]), forest.value_begin[leaves]
    places = begin[:, np.newaxis] + np.arange(width)
    if len(forest.value_output) == 0:
        own = outputs - int(forest.tree_output[tree])
        columns = np.flatnonzero((own >= 0) & (own < width))
        return columns, forest.values[begin[:, np.newaxis] + own[columns]].astype(np.float64)
    # Leaves of a few outputs each.
    rows = np.arange(0, width * len(leaves) + 1, width)
    values = forest.values[places].astype(np.float64).ravel()
    shape = len(leaves), forest.n_outputs
    sparse = scipy.sparse.csr_array((values, forest.value_output[places].ravel(), rows), shape=shape)
    return slice(None), sparse[:, outputs]
