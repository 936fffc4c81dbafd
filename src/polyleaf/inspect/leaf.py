"""One leaf: its values, and the conditions on the way to it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from polyleaf.data.category_values import Category
from polyleaf.inspect.named_trees import NamedTrees

_HOW_MANY_TO_NAME = 8


@dataclass(frozen=True)
class SplitCondition:
    """What a split on the way to a leaf asks of a row.

    Attributes
    ----------
    feature : str
        The name of the feature.
    side : {"left", "right"}
        Where rows of the leaf go. Left are values of at most `threshold`, right those above it.
    threshold : float or None
        Of a split by numbers; infinite where it only tells values that are missing from those that are not.
    categories : tuple or None
        Of a split by categories: those that go to this side.
    missing : bool
        Whether missing values go to this side too, and with them categories that ``fit`` has not seen.
    """

    feature: str
    side: str
    threshold: float | None
    categories: tuple[Category, ...] | None
    missing: bool

    def __str__(self) -> str:
        """Return it as one would write it: "age <= 3.5", "colour in {'blue', 'red'} or missing"."""
        if self.categories == () and self.missing:
            return f"{self.feature} is missing"
        if self.categories is not None:
            named = [repr(value) for value in self.categories[:_HOW_MANY_TO_NAME]]
            more = len(self.categories) - len(named)
            said = ", ".join([*named, *([f"{more} more"] if more else [])])
            return f"{self.feature} in {{{said}}}{' or missing' if self.missing else ''}"
        assert self.threshold is not None
        if math.isinf(self.threshold):
            return f"{self.feature} is {'missing' if self.missing else 'not missing'}"
        sign = "<=" if self.side == "left" else ">"
        return f"{self.feature} {sign} {self.threshold!r}{' or missing' if self.missing else ''}"


@dataclass(frozen=True)
class Leaf:
    """A leaf of a tree, with names.

    Attributes
    ----------
    tree, round, node : int
        Where it is; the node is counted within the tree, as ``apply`` gives it.
    values : dict of str to float
        What it adds to the raw score of each of its outputs. A sparse leaf has some of them, a tree of
        ``multi_strategy="one_output_per_tree"`` one.
    count : int
        How many training rows it had.
    cover : float
        The sum of their weights.
    path : tuple of SplitCondition
        What its rows have in common, from the root on.
    """

    tree: int
    round: int
    node: int
    values: dict[str, float]
    count: int
    cover: float
    path: tuple[SplitCondition, ...]

    def __str__(self) -> str:
        """Return the path and the first values, as one would write them."""
        few = list(self.values.items())[:_HOW_MANY_TO_NAME]
        more = len(self.values) - len(few)
        values = [f"{name}: {value:+.4g}" for name, value in few] + ([f"{more} more"] if more else [])
        path = ", ".join(map(str, self.path)) or "all rows"
        return f"tree {self.tree}, leaf {self.node} ({self.count} rows): {path} -> {', '.join(values)}"


def leaf_of(trees: NamedTrees, tree: int, node: int) -> Leaf:
    """Return a leaf; the node is counted within its tree.

    Raises
    ------
    ValueError
        When there is no such tree or node, or the node is a split.
    """
    forest = trees.forest
    if not 0 <= tree < forest.n_trees:
        raise ValueError(f"there is no tree {tree}: the model has {forest.n_trees}, from 0 on.")
    begin, end = forest.node_begin[tree : tree + 2].tolist()
    if not 0 <= node < end - begin:
        raise ValueError(f"there is no node {node} in tree {tree}: it has {end - begin}, from 0 on.")
    place = begin + node
    if forest.left[place] >= 0:
        leaves = np.flatnonzero(forest.left[begin:end] < 0).tolist()
        said = ", ".join(map(str, leaves[:_HOW_MANY_TO_NAME])) + (", ..." if len(leaves) > 8 else "")
        raise ValueError(f"node {node} of tree {tree} is a split; its leaves are the nodes {said}.")
    places, values = trees.leaf(place)
    return Leaf(
        tree=tree,
        round=tree // forest.trees_per_round,
        node=node,
        values={trees.outputs[j]: value for j, value in zip(places.tolist(), values.tolist(), strict=True)},
        count=int(forest.count[place]),
        cover=float(forest.cover[place]),
        path=_path(trees, begin, end, node),
    )


def _path(trees: NamedTrees, begin: int, end: int, node: int) -> tuple[SplitCondition, ...]:
    """Return the conditions from the root of a tree, whose nodes are these, to a node of it."""
    left = trees.forest.left[begin:end]
    path: list[SplitCondition] = []
    # Children stand side by side, after their parent. A forged file may have nodes that nothing leads to.
    while node > 0 and len(found := np.flatnonzero((left == node) | ((left == node - 1) & (left >= 0)))) > 0:
        above = int(found[0])
        path.append(condition_at(trees, begin + above, goes_left=bool(node == left[above])))
        node = above
    return tuple(reversed(path))


def condition_at(trees: NamedTrees, node: int, *, goes_left: bool) -> SplitCondition:
    """Return what a split, counted in the forest, asks of the rows of one side."""
    by_category = trees.splits_by_categories(node)
    left, right = trees.categories(node) if by_category else ([], [])
    return SplitCondition(
        feature=trees.features[int(trees.forest.feature[node])],
        side="left" if goes_left else "right",
        threshold=None if by_category else float(trees.forest.threshold[node]),
        categories=tuple(left if goes_left else right) if by_category else None,
        missing=bool(trees.forest.missing_left[node]) == goes_left,
    )
