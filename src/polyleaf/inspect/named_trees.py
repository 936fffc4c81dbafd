"""The trees of a model with the names of features, categories and outputs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from polyleaf.data.category_values import Category
from polyleaf.data.inputs import FloatArray
from polyleaf.model.fitted import FittedModel
from polyleaf.model.forest import Forest


@dataclass(frozen=True)
class NamedTrees:
    """A fitted model whose nodes can be asked for by names. Outputs are in the order of y.

    Attributes
    ----------
    model : FittedModel
        The model.
    """

    model: FittedModel

    @property
    def forest(self) -> Forest:
        """The trees."""
        return self.model.forest

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Names of the features; "x0", "x1", ... where the table had none."""
        names = self.model.feature_names
        return names if names is not None else tuple(f"x{j}" for j in range(self.forest.n_features))

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs, in the order of y; two of the same name have their places behind it."""
        names = self.model.coding.columns_of_outputs()
        often = {name for name, times in Counter(names).items() if times > 1}
        return tuple(f"{name} ({j})" if name in often else name for j, name in enumerate(names))

    @cached_property
    def place(self) -> npt.NDArray[np.intp]:
        """For each output of the forest, its place in the order of y."""
        order = self.model.coding.in_order_of_y(np.arange(self.forest.n_outputs))
        place = np.empty(len(order), dtype=np.intp)
        place[order] = np.arange(len(order))
        return place

    @cached_property
    def parent(self) -> npt.NDArray[np.int64]:
        """The parent of each node, within its tree; -1 of a root."""
        parent = np.full(len(self.forest.left), -1, dtype=np.int64)
        splits = np.flatnonzero(self.forest.left >= 0)
        first = self._first_of_tree[splits]
        child = first + self.forest.left[splits]
        parent[child] = parent[child + 1] = splits - first
        return parent

    @cached_property
    def depth(self) -> npt.NDArray[np.int64]:
        """How many splits are above each node."""
        depth = [0] * len(self.parent)
        above = (self.parent + self._first_of_tree).tolist()
        # Children come after their parents.
        for node in np.flatnonzero(self.parent >= 0).tolist():
            depth[node] = depth[above[node]] + 1
        return np.array(depth, dtype=np.int64)

    @cached_property
    def tree(self) -> npt.NDArray[np.int64]:
        """The tree of each node."""
        return np.repeat(np.arange(self.forest.n_trees), np.diff(self.forest.node_begin))

    @cached_property
    def _first_of_tree(self) -> npt.NDArray[np.int64]:
        """Of each node: the first node of its tree."""
        begin: npt.NDArray[np.int64] = self.forest.node_begin[self.tree]
        return begin

    def splits_by_categories(self, node: int) -> bool:
        """Whether a node, counted in the forest, asks for a set of categories."""
        return bool(self.forest.category_begin[node] < self.forest.category_begin[node + 1])

    def categories(self, node: int) -> tuple[list[Category], list[Category]]:
        """Return the categories that go left and right at a node, counted in the forest."""
        forest = self.forest
        words = forest.category_bits[forest.category_begin[node] : forest.category_begin[node + 1]]
        bits = np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little")
        values = self.model.categories[int(forest.feature[node])].values
        inside: list[Category] = []
        outside: list[Category] = []
        for code, value in enumerate(values):
            (inside if code < len(bits) and bits[code] else outside).append(value)
        # The set goes where missing values do not.
        return (outside, inside) if forest.missing_left[node] else (inside, outside)

    def leaf(self, node: int) -> tuple[npt.NDArray[np.intp], FloatArray]:
        """Return the outputs (in the order of y) and the values of a leaf, counted in the forest."""
        forest = self.forest
        tree = int(np.searchsorted(forest.node_begin, node, side="right")) - 1
        begin, width = int(forest.value_begin[node]), int(forest.tree_width[tree])
        if len(forest.value_output) > 0:
            outputs = forest.value_output[begin : begin + width]
        else:
            outputs = np.arange(width, dtype=np.int32) + forest.tree_output[tree]
        values = forest.values[begin : begin + width].astype(np.float64) * forest.unit[outputs]
        places = self.place[outputs]
        order = np.argsort(places, kind="stable")
        return places[order], values[order]
