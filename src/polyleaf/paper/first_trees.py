"""The first trees of GBDT-SO and GBDT-MO, small enough to be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from polyleaf.model.forest import Forest
from polyleaf.paper.methods import JointTrees, TreePerOutput
from polyleaf.paper.problems import Split
from polyleaf.paper.settings import Growth

DRAWN_DEPTH = 3
_ROUNDS = 2
# Yeast's classes in the order of their codes; drawn for GBDT-SO: the two largest, the paper's first two.
YEAST_CLASSES = ("CYT", "ERL", "EXC", "ME1", "ME2", "ME3", "MIT", "NUC", "POX", "VAC")
_OUTPUTS = (YEAST_CLASSES.index("CYT"), YEAST_CLASSES.index("NUC"))


@dataclass(frozen=True)
class Node:
    """A node: a question (feature <= threshold) with two children, or a leaf with values by output.

    Attributes
    ----------
    feature : int
        -1 in leaves.
    threshold : float
        0 in leaves.
    children : sequence of int
        Left and right; empty in leaves.
    rows : int
        Training rows in the node.
    outputs, values : sequence
        Which outputs a leaf adds to, and what.
    """

    feature: int
    threshold: float
    children: Sequence[int]
    rows: int
    outputs: Sequence[int]
    values: Sequence[float]


@dataclass(frozen=True)
class DrawnTree:
    """A tree and where it belongs in the figure (round and column from 0)."""

    title: str
    row: int
    column: int
    nodes: Sequence[Node]


def first_trees(split: Split, growth: Growth, threads: int) -> list[DrawnTree]:
    """Grow two rounds at depth 3: GBDT-SO's trees of two outputs, then GBDT-MO's for all."""
    shallow = replace(growth, max_depth=DRAWN_DEPTH)
    single = TreePerOutput().grow(split, "multiclass", shallow, _ROUNDS, threads)
    joint = JointTrees().grow(split, "multiclass", shallow, _ROUNDS, threads)
    drawn = []
    for number in range(_ROUNDS):
        for column, output in enumerate(_OUTPUTS):
            tree = _nodes(single._forest, number * single.n_outputs_ + output)
            title = f"GBDT-SO, round {number + 1}, class {YEAST_CLASSES[output]}"
            drawn.append(DrawnTree(title, number, column, tree))
        title = f"GBDT-MO, round {number + 1}, all classes"
        drawn.append(DrawnTree(title, number, len(_OUTPUTS), _nodes(joint._forest, number)))
    return drawn


def _nodes(forest: Forest, tree: int) -> list[Node]:
    """Return a tree of a forest node by node."""
    begin, end = int(forest.node_begin[tree]), int(forest.node_begin[tree + 1])
    first, width = int(forest.tree_output[tree]), int(forest.tree_width[tree])
    nodes = []
    for node in range(begin, end):
        left, rows = int(forest.left[node]), int(forest.count[node])
        if left >= 0:
            question = int(forest.feature[node]), float(forest.threshold[node])
            nodes.append(Node(*question, (left, left + 1), rows, (), ()))
        else:
            at = int(forest.value_begin[node])
            values = [float(value) for value in forest.values[at : at + width]]
            nodes.append(Node(-1, 0.0, (), rows, list(range(first, first + width)), values))
    return nodes
