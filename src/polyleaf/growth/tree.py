"""A tree as it is grown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf import _core
from polyleaf.data.inputs import FloatArray


@dataclass(frozen=True)
class Tree:
    """A tree as arrays over its nodes.

    Nodes stand in the order best-first growth creates them: children after their parent, side by side.

    Attributes
    ----------
    feature : int32
        Which feature a node asks for; -1 in leaves.
    bin : int32
        Last bin that goes left. Of a split by categories: the number of the candidate.
    threshold : float64
        Rows with ``x[feature] <= threshold`` go left. Of a split by categories: 0, which means nothing.
    missing_left : uint8
        1 where missing values go left.
    category_begin : int64 of shape (nodes + 1,)
        Words ``category_begin[i]`` to ``category_begin[i + 1]`` of `category_bits` are the set of a split by
        categories: bit ``c % 32`` of word ``c // 32`` stands for category c. Those of the set go where
        missing values do not; all others, unseen ones among them, go with missing values. Other nodes have
        no words.
    category_bits : uint32
        The words of all sets.
    left : int32
        The left child; the right one is the next node. -1 in leaves.
    gain : float64
        Of the split, with the factor 1/2 of the paper's eq. 16.
    cover : float64
        Sum of the weights of the node's training rows.
    count : int64
        Number of the node's training rows.
    leaf : int32
        Which row of `values` a leaf holds; -1 in inner nodes.
    values : float32 of shape (leaves, outputs), or (leaves, k) of sparse leaves
        Learning rate applied.
    outputs : int32 of the same shape
        Which output a value of a sparse leaf belongs to; of no rows where leaves hold all outputs.
    gain_feature : int32, or None
        The features of the splits, ascending; None where gains are not shared out to the outputs.
    output_gain : float64 of shape (gain features, outputs), or None
        What each output gains by each of them, before its weight in the split score.
    """

    feature: npt.NDArray[np.int32]
    bin: npt.NDArray[np.int32]
    threshold: FloatArray
    missing_left: npt.NDArray[np.uint8]
    category_begin: npt.NDArray[np.int64]
    category_bits: npt.NDArray[np.uint32]
    left: npt.NDArray[np.int32]
    gain: FloatArray
    cover: FloatArray
    count: npt.NDArray[np.int64]
    leaf: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    outputs: npt.NDArray[np.int32]
    # No attributes of the class: a tree that is kept elsewhere looks for them.
    gain_feature: npt.NDArray[np.int32] | None = field(default_factory=lambda: None)
    output_gain: FloatArray | None = field(default_factory=lambda: None)


class GrownTree(Tree):
    """A tree in the memory of the core, whose arrays are made when they are first asked for.

    Most trees of a cross-validation are never looked at. It is a plain `Tree` where it is unpickled.

    Parameters
    ----------
    core : _core.KeptTree
        The tree.
    """

    core: _core.KeptTree

    def __init__(self, core: _core.KeptTree) -> None:
        object.__setattr__(self, "core", core)

    def __getattr__(self, name: str) -> Any:
        if name == "core":  # of an object that is not made yet
            raise AttributeError(name)
        array = getattr(self.core, name)
        object.__setattr__(self, name, array)  # a forest after each round asks again and again
        return array

    def __reduce__(self) -> tuple[type[Tree], tuple[Any, ...]]:
        return Tree, tuple(getattr(self, one.name) for one in fields(Tree))


def joined_arrays(trees: Sequence[Tree], name: str) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the arrays of this name one after the other, flat, and how many numbers are of each tree.

    There is at least one tree.
    """
    kept = [tree.core for tree in trees if isinstance(tree, GrownTree)]
    if len(kept) == len(trees):  # that are then not looked at one by one
        return _core.KeptTree.joined(kept, name)
    parts = [getattr(tree, name).ravel() for tree in trees]
    return np.concatenate(parts), np.array([len(part) for part in parts], dtype=np.int64)
