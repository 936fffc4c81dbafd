"""A tree as other libraries keep it, and the same tree as polyleaf keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import FloatArray
from polyleaf.growth.tree import Tree
from polyleaf.importing.fields import IntArray

Words = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class ForeignTree:
    """A tree as arrays over its nodes, which may stand in any order; node 0 is the root.

    Attributes
    ----------
    where : str
        What errors call it.
    left, right : int64
        The children; those of leaves are negative.
    feature : int64
        Which feature a split asks for.
    threshold : float64
        Rows with ``x[feature] <= threshold`` go left.
    missing_left : bool
        Whether missing values go left.
    category_sets : mapping of int to uint32 ndarray
        By the number of the node: the set of a split by categories, as polyleaf has it.
    gain, cover, count
        As in polyleaf's trees; 0 where the library does not keep them.
    values : float64 of shape (any, outputs)
        What leaves add.
    value_row : int64
        Which row of `values` a leaf has; anything in splits.
    first_output : int
        The output that the first value belongs to.
    """

    where: str
    left: IntArray
    right: IntArray
    feature: IntArray
    threshold: FloatArray
    missing_left: npt.NDArray[np.bool_]
    category_sets: Mapping[int, Words]
    gain: FloatArray
    cover: FloatArray
    count: IntArray
    values: FloatArray
    value_row: IntArray
    first_output: int

    @property
    def width(self) -> int:
        """How many outputs it adds to."""
        return int(self.values.shape[1])

    def order(self) -> npt.NDArray[np.intp]:
        """Return the nodes that can be reached, level by level, children side by side.

        Raises
        ------
        ValueError
            When a child is no node, or the child of two: then this is no tree.
        """
        left, right = self.left.tolist(), self.right.tolist()
        seen = bytearray(len(left))
        seen[0] = 1
        order = [0]
        for node in order:  # grows on the way
            if left[node] < 0:
                continue
            for child in (left[node], right[node]):
                if not 0 <= child < len(left):
                    raise ValueError(f"its {self.where} has a child {child}, but {len(left)} nodes.")
                if seen[child]:
                    raise ValueError(f"its {self.where} is no tree: node {child} is reached twice.")
                seen[child] = 1
                order.append(child)
        return np.array(order, dtype=np.intp)


def laid_out(tree: ForeignTree, unit: FloatArray) -> Tree:
    """Return a tree as polyleaf has it, its values in these units, one for each of its outputs.

    Raises
    ------
    ValueError
        When it is no tree.
    """
    order = tree.order()
    is_leaf = tree.left[order] < 0
    place = np.zeros(len(tree.left), dtype=np.int64)
    place[order] = np.arange(len(order))
    sets = [tree.category_sets.get(node, _NO_WORDS) for node in order.tolist()]
    return Tree(
        feature=np.where(is_leaf, -1, tree.feature[order]).astype(np.int32),
        bin=np.zeros(len(order), np.int32),
        threshold=np.where(is_leaf, 0.0, tree.threshold[order]),
        missing_left=np.where(is_leaf, False, tree.missing_left[order]).astype(np.uint8),
        category_begin=np.cumsum([0, *map(len, sets)], dtype=np.int64),
        category_bits=np.concatenate(sets),
        left=np.where(is_leaf, -1, place[np.where(is_leaf, 0, tree.left[order])]).astype(np.int32),
        gain=np.where(is_leaf, 0.0, tree.gain[order]),
        cover=tree.cover[order],
        count=tree.count[order],
        leaf=np.where(is_leaf, np.cumsum(is_leaf) - 1, -1).astype(np.int32),
        values=(tree.values[tree.value_row[order[is_leaf]]] / unit).astype(np.float32),
        outputs=np.empty((0, tree.width), np.int32),
    )


_NO_WORDS: Words = np.empty(0, np.uint32)
