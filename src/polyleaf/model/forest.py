"""The fitted model: a forest as flat arrays, and prediction with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf import _core
from polyleaf.data.category_values import MOST_CATEGORIES
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sparse_tables import DenseRows, SparseTable
from polyleaf.growth.tree import SparseLabels, Tree

# Names of the arrays, their dtypes and what they run over. This is the model file's layout, too.
_LAYOUT: dict[str, tuple[type[np.generic], str]] = {
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
_CATEGORY_ARRAYS = ("category_begin", "category_bits")
# Arrays that a forest may do without, all or none of them.
_OPTIONAL: dict[str, tuple[type[np.generic], str]] = {
    "gain_feature": (np.int32, "gain features"),
    "output_gain": (np.float32, "output gains"),
}
_MOST_FEATURES = 2**26
_MOST_CATEGORY_WORDS = -(-MOST_CATEGORIES // 32)
_LARGEST_UNIT = 2.0**1000
_TREES_TOGETHER = 16  # whose leaves are looked up together


@dataclass
class Forest:
    """All trees of a model, as arrays over trees and over nodes.

    Attributes
    ----------
    n_features, n_outputs, trees_per_round : int
        Columns of the table, raw scores a row, trees one round adds.
    base_score : float64 of shape (outputs,)
        Raw scores before the first tree.
    unit : float64 of shape (outputs,)
        Powers of two that `values` are multiples of; 1 but for targets of extreme size.
    node_begin : int64 of shape (trees + 1,)
        Where each tree's nodes begin.
    tree_output, tree_width : int32 of shape (trees,)
        First output a tree adds to, and how many.
    feature, threshold, missing_left, left, gain, cover, count
        Per node, as in :class:`polyleaf.growth.tree.Tree`; children are counted within the tree.
    category_begin, category_bits
        The sets of the splits by categories, as in a tree, for the nodes of all trees.
    value_begin : int64
        Per node: where a leaf's values begin in `values`; -1 in inner nodes.
    values : float32
        Leaf after leaf, the outputs of the tree side by side.
    value_output : int32
        Of sparse leaves: the output each value belongs to. Empty where leaves hold all outputs of their tree.
    gain_feature : int32, or None
        The features that the rounds up to the best one use, ascending; None: not known.
    output_gain : float32 of shape (gain features x outputs,), or None
        What each output gains by each of these features in these rounds.
    """

    n_features: int
    n_outputs: int
    trees_per_round: int
    base_score: FloatArray
    unit: FloatArray
    node_begin: npt.NDArray[np.int64]
    tree_output: npt.NDArray[np.int32]
    tree_width: npt.NDArray[np.int32]
    feature: npt.NDArray[np.int32]
    threshold: FloatArray
    missing_left: npt.NDArray[np.uint8]
    category_begin: npt.NDArray[np.int64]
    category_bits: npt.NDArray[np.uint32]
    left: npt.NDArray[np.int32]
    gain: FloatArray
    cover: FloatArray
    count: npt.NDArray[np.int64]
    value_begin: npt.NDArray[np.int64]
    values: npt.NDArray[np.float32]
    value_output: npt.NDArray[np.int32]
    gain_feature: npt.NDArray[np.int32] | None = None
    output_gain: npt.NDArray[np.float32] | None = None
    _packed: _core.ForestPredictor | None = field(default=None, init=False, repr=False, compare=False)
    on_gpu: dict[int, Any] = field(default_factory=dict, init=False, repr=False, compare=False)  # by device

    @classmethod
    def from_trees(
        cls,
        trees: Sequence[tuple[Tree, int]],
        *,
        n_features: int,
        trees_per_round: int,
        base_score: FloatArray,
        unit: FloatArray,
    ) -> Forest:
        """Return the forest of these trees, each with the first output it adds to."""
        sizes = [len(tree.feature) for tree, _ in trees]
        n_values = np.cumsum([0] + [tree.values.size for tree, _ in trees])
        value_begin = [
            np.where(tree.leaf >= 0, first + tree.leaf.astype(np.int64) * tree.values.shape[1], -1)
            for (tree, _), first in zip(trees, n_values, strict=False)
        ]

        def joined(name: str, dtype: type[np.generic]) -> npt.NDArray[Any]:
            parts = [getattr(tree, name).ravel() for tree, _ in trees]
            return np.concatenate(parts) if parts else np.empty(0, dtype)

        node_arrays = (
            "feature",
            "threshold",
            "missing_left",
            "category_bits",
            "left",
            "gain",
            "cover",
            "count",
            "values",
        )
        set_sizes = [np.diff(tree.category_begin) for tree, _ in trees]
        outputs = [tree.outputs.ravel() for tree, _ in trees]
        return cls(
            n_features=n_features,
            n_outputs=len(base_score),
            trees_per_round=trees_per_round,
            base_score=base_score,
            unit=unit,
            node_begin=np.cumsum([0, *sizes], dtype=np.int64),
            tree_output=np.array([output for _, output in trees], dtype=np.int32),
            tree_width=np.array([tree.values.shape[1] for tree, _ in trees], dtype=np.int32),
            category_begin=np.cumsum(np.concatenate([[0], *set_sizes]), dtype=np.int64),
            value_begin=np.concatenate(value_begin) if value_begin else np.empty(0, np.int64),
            value_output=np.concatenate(outputs) if outputs else np.empty(0, np.int32),
            **{name: joined(name, _LAYOUT[name][0]) for name in node_arrays},
        )

    def followed_by(self, more: Forest) -> Forest:
        """Return the forest of these trees and then those of `more`, which has the same outputs and units."""

        def joined(name: str, over: str) -> npt.NDArray[Any]:
            first, second = getattr(self, name), getattr(more, name)
            # Positions in the other arrays move on by what stands before them.
            if over.endswith("+ 1"):
                first, second = first[:-1], second + first[-1]
            elif name == "value_begin":
                second = np.where(second >= 0, second + len(self.values), -1)
            return np.concatenate([first, second])

        return Forest(
            n_features=self.n_features,
            n_outputs=self.n_outputs,
            trees_per_round=self.trees_per_round,
            base_score=self.base_score,
            unit=self.unit,
            **{
                name: joined(name, over)
                for name, (_, over) in _LAYOUT.items()
                if over not in ("outputs", "shape")
            },
        )

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.tree_output)

    @property
    def n_rounds(self) -> int:
        """Number of boosting rounds."""
        return self.n_trees // self.trees_per_round

    def predict_raw(
        self, X: Array | SparseTable, n_rounds: int | None = None, n_threads: int = 1
    ) -> FloatArray:
        """Return the raw scores, float64 of shape (rows, outputs), after `n_rounds` rounds (None: all)."""
        raw = self._start(X.shape[0])
        if isinstance(X, np.ndarray):  # one call less where a single row counts
            self._predictor.add(X, 0, self._trees(n_rounds), raw, n_threads)
        else:
            self._add(X, 0, self._trees(n_rounds), raw, n_threads)
        return self._finish(raw)

    def add_round_to(
        self, X: Array | SparseTable, number: int, score: FloatArray, n_threads: int = 1
    ) -> None:
        """Add the trees of one round to scores that are kept in units."""
        begin = number * self.trees_per_round
        self._add(X, begin, begin + self.trees_per_round, score, n_threads)

    def add_to_sparse(self, X: Array | SparseTable, labels: SparseLabels, n_threads: int = 1) -> None:
        """Add all trees, whose leaves must be sparse, to the scores of sparse labels."""
        for first in range(0, self.n_trees, _TREES_TOGETHER):
            end = min(first + _TREES_TOGETHER, self.n_trees)
            leaves = self._apply(X, first, end, n_threads)
            for tree in range(first, end):
                of_nodes = self.value_begin[self.node_begin[tree] : self.node_begin[tree + 1]]
                width = int(self.tree_width[tree])
                low = of_nodes[of_nodes >= 0].min()
                part = slice(low, of_nodes.max() + width)
                begin = of_nodes[leaves[:, tree - first]] - low
                labels.add(begin, self.values[part], self.value_output[part], width, n_threads)

    def staged_raw(
        self, X: Array | SparseTable, n_threads: int = 1, n_rounds: int | None = None
    ) -> Iterator[FloatArray]:
        """Yield the raw scores after each round, a new array each time."""
        raw = self._start(X.shape[0])
        table = X if isinstance(X, np.ndarray) else DenseRows(X, self._used_features)
        for begin in range(0, self._trees(n_rounds), self.trees_per_round):
            self._add(table, begin, begin + self.trees_per_round, raw, n_threads)
            yield self._finish(raw.copy())

    def apply(
        self, X: Array | SparseTable, n_rounds: int | None = None, n_threads: int = 1
    ) -> npt.NDArray[np.int32]:
        """Return, per row and tree, the node (counted within its tree) of the leaf the row falls into."""
        n_trees = self._trees(n_rounds)
        if n_trees == 0:
            return np.empty((X.shape[0], 0), dtype=np.int32)
        return self._apply(X, 0, n_trees, n_threads)

    def _apply(self, X: Array | SparseTable, begin: int, end: int, n_threads: int) -> npt.NDArray[np.int32]:
        """Return the leaves in trees [begin, end); a sparse table is made dense some rows at a time."""
        if isinstance(X, np.ndarray):
            return self._predictor.apply(X, begin, end, n_threads)
        predictor = self._on_used_features._predictor
        leaves = np.empty((X.shape[0], end - begin), dtype=np.int32)
        for rows, block in DenseRows(X, self._used_features):
            leaves[rows] = predictor.apply(block, begin, end, n_threads)
        return leaves

    def _add(
        self, X: Array | SparseTable | DenseRows, begin: int, end: int, raw: FloatArray, n_threads: int
    ) -> None:
        """Add trees [begin, end) to scores in units; a sparse table is made dense some rows at a time."""
        if isinstance(X, np.ndarray):
            self._predictor.add(X, begin, end, raw, n_threads)
            return
        predictor = self._on_used_features._predictor
        for rows, block in X if isinstance(X, DenseRows) else DenseRows(X, self._used_features):
            predictor.add(block, begin, end, raw[rows], n_threads)

    @cached_property
    def _used_features(self) -> npt.NDArray[np.int32]:
        """The features that a split asks for, ascending; never none, as a table has a column."""
        used = np.unique(self.feature[self.left >= 0])
        return used if len(used) > 0 else np.zeros(1, dtype=np.int32)

    @cached_property
    def _on_used_features(self) -> Forest:
        """The same forest for tables that hold the used features only: sparse tables have many more."""
        used = self._used_features
        return replace(
            self,
            n_features=len(used),
            feature=np.where(self.left >= 0, np.searchsorted(used, self.feature), self.feature).astype(
                np.int32
            ),
        )

    def categorical_features(self) -> list[int]:
        """Return the features that a split by categories asks for."""
        return sorted({int(feature) for feature in self.feature[np.diff(self.category_begin) > 0]})

    def importance(self, kind: str, n_rounds: int | None = None) -> FloatArray:
        """Return, per feature, the sum of the gains or covers of its splits, or their number ("split")."""
        inner = self._inner(n_rounds)
        weights = None if kind == "split" else getattr(self, kind)[inner]
        return np.bincount(self.feature[inner], weights=weights, minlength=self.n_features).astype(np.float64)

    def output_importance(self, kind: str, n_rounds: int | None = None) -> FloatArray:
        """Return the same per feature and output; "gain" is that of the rounds up to the best one.

        Every split of a tree of all outputs counts for each of them with its whole cover, or as one split.

        Raises
        ------
        ValueError
            When the outputs' shares of the gain are not known.
        """
        shape = (self.n_features, self.n_outputs)
        if kind == "gain":
            if self.gain_feature is None or self.output_gain is None:
                raise ValueError(
                    "the gain per output is not known: the model is from an older file, has trees of more "
                    "than 1,024 outputs, sparse labels or hessian='exact'."
                )
            gains = np.zeros(shape)
            gains[self.gain_feature] = self.output_gain.reshape(-1, self.n_outputs)
            return gains
        if self.trees_per_round == 1:
            return np.repeat(self.importance(kind, n_rounds)[:, np.newaxis], self.n_outputs, axis=1)
        inner = self._inner(n_rounds)
        output = np.repeat(self.tree_output, np.diff(self.node_begin))[inner]
        cell = self.feature[inner].astype(np.int64) * self.n_outputs + output
        weights = None if kind == "split" else getattr(self, kind)[inner]
        counts = np.bincount(cell, weights=weights, minlength=self.n_features * self.n_outputs)
        return counts.astype(np.float64).reshape(shape)

    def _inner(self, n_rounds: int | None) -> npt.NDArray[np.bool_]:
        """Return which nodes are splits of the first rounds."""
        inner: npt.NDArray[np.bool_] = self.left >= 0
        inner[self.node_begin[self._trees(n_rounds)] :] = False
        return inner

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything as plain arrays."""
        without = {"shape", *(_CATEGORY_ARRAYS if len(self.category_bits) == 0 else ())}
        arrays = {name: getattr(self, name) for name in _LAYOUT if name not in without}
        arrays["shape"] = np.array([self.n_features, self.n_outputs, self.trees_per_round], dtype=np.int64)
        arrays |= {name: getattr(self, name) for name in _OPTIONAL if getattr(self, name) is not None}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Forest:
        """Return the forest of these arrays, after checking that no prediction can go astray.

        Raises
        ------
        ValueError
            An array is missing, superfluous, of the wrong type or size, or points outside of the forest.
        """
        if not any(name in arrays for name in _CATEGORY_ARRAYS):
            n_nodes = len(arrays["feature"]) if "feature" in arrays else 0
            arrays = dict(arrays) | {
                "category_begin": np.zeros(n_nodes + 1, np.int64),
                "category_bits": np.empty(0, np.uint32),
            }
        _check_arrays(arrays)
        n_features, n_outputs, trees_per_round = (int(v) for v in arrays["shape"])
        return cls(
            n_features=n_features,
            n_outputs=n_outputs,
            trees_per_round=trees_per_round,
            **{name: np.ascontiguousarray(array) for name, array in arrays.items() if name != "shape"},
        )

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"_packed": None, "on_gpu": {}}

    @property
    def _predictor(self) -> _core.ForestPredictor:
        if self._packed is None:
            names = (
                "node_begin",
                "feature",
                "threshold",
                "left",
                "missing_left",
                "category_begin",
                "category_bits",
                "value_begin",
                "values",
                "value_output",
            )
            self._packed = _core.ForestPredictor(
                tree_output=self.tree_output,
                tree_width=self.tree_width,
                **{name: getattr(self, name) for name in names},
            )
        return self._packed

    def _trees(self, n_rounds: int | None) -> int:
        return self.n_trees if n_rounds is None else n_rounds * self.trees_per_round

    # Scores are summed in units. These are powers of two, so that the sum has the bits it had in training.
    def _start(self, n_rows: int) -> FloatArray:
        raw = np.empty((n_rows, self.n_outputs))
        raw[:] = self._base_in_units
        return raw

    def _finish(self, raw: FloatArray) -> FloatArray:
        return raw if self._units_are_one else raw * self.unit

    @cached_property
    def _base_in_units(self) -> FloatArray:
        return self.base_score / self.unit

    @cached_property
    def _units_are_one(self) -> bool:
        return bool((self.unit == 1).all())


def _check_arrays(arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Raise ValueError unless the arrays are those of a forest."""

    def expect(condition: Any, problem: str) -> None:
        if not np.all(condition):
            raise ValueError(f"not a forest: {problem}")

    layout = _LAYOUT | (_OPTIONAL if not _OPTIONAL.keys().isdisjoint(arrays) else {})
    expect(set(arrays) == set(layout), f"expected the arrays {sorted(layout)}, got {sorted(arrays)}")
    for name, (dtype, _) in layout.items():
        expect(
            arrays[name].ndim == 1 and arrays[name].dtype == dtype,
            f"{name} must be a vector of {dtype.__name__}",
        )
    expect(len(arrays["shape"]) == 3, "shape must hold 3 numbers")
    n_features, n_outputs, trees_per_round = (int(v) for v in arrays["shape"])
    expect(1 <= n_features <= _MOST_FEATURES and 1 <= n_outputs < 2**31, "the number of features or outputs")
    sizes = {
        "outputs": n_outputs,
        "trees": len(arrays["tree_output"]),
        "trees + 1": len(arrays["tree_output"]) + 1,
        "nodes": len(arrays["feature"]),
        "nodes + 1": len(arrays["feature"]) + 1,
        "category words": len(arrays["category_bits"]),
        "values": len(arrays["values"]),
        "sparse values": len(arrays["values"]) if len(arrays["value_output"]) > 0 else 0,
        "shape": 3,
        "gain features": len(arrays.get("gain_feature", ())),
        "output gains": len(arrays.get("gain_feature", ())) * n_outputs,
    }
    for name, (_, over) in layout.items():
        expect(
            len(arrays[name]) == sizes[over], f"{name} has {len(arrays[name])} values, expected {sizes[over]}"
        )
    n_trees, n_nodes = sizes["trees"], sizes["nodes"]
    expect(
        trees_per_round in (1, n_outputs) and n_trees % trees_per_round == 0, "trees do not fill whole rounds"
    )

    unit = arrays["unit"]
    expect(
        np.isfinite(unit) & (unit >= 1 / _LARGEST_UNIT) & (unit <= _LARGEST_UNIT), "a unit is out of range"
    )
    expect(np.frexp(unit)[0] == 0.5, "a unit is not a power of two")
    expect(np.isfinite(arrays["base_score"]), "a base score is not finite")
    expect(np.isfinite(arrays["values"]), "a leaf value is not finite")
    value_output = arrays["value_output"]
    expect(
        (value_output >= 0) & (value_output < n_outputs), "a value belongs to an output that does not exist"
    )
    expect(~np.isnan(arrays["threshold"]), "a threshold is NaN")
    expect(np.isfinite(arrays["gain"]) & np.isfinite(arrays["cover"]), "a gain or cover is not finite")

    begin = arrays["node_begin"]
    expect(begin[0] == 0 and begin[-1] == n_nodes, "the trees do not cover the nodes")
    expect(np.diff(begin) > 0, "a tree has no nodes")
    output, width = arrays["tree_output"].astype(np.int64), arrays["tree_width"].astype(np.int64)
    expect(
        (output >= 0) & (width >= 1) & (output + width <= n_outputs),
        "a tree adds to outputs that do not exist",
    )
    expect(
        len(value_output) == 0 or output == 0,
        "a tree of sparse leaves begins at another output than the first",
    )
    size = np.repeat(np.diff(begin), np.diff(begin))
    position = np.arange(n_nodes) - np.repeat(begin[:-1], np.diff(begin))
    left = arrays["left"].astype(np.int64)
    inner = left >= 0
    # Children after their parent: every path ends.
    expect((left[inner] > position[inner]) & (left[inner] + 1 < size[inner]), "a child is out of place")
    feature = arrays["feature"]
    expect(
        (feature[inner] >= 0) & (feature[inner] < n_features),
        "a split asks for a feature that does not exist",
    )
    category_begin = arrays["category_begin"]
    n_words = sizes["category words"]
    expect((category_begin >= 0) & (category_begin <= n_words), "a set of categories is out of range")
    set_size = np.diff(category_begin)
    expect(
        category_begin[0] == 0 and category_begin[-1] == n_words and np.all(set_size >= 0),
        "the sets of categories do not cover their words",
    )
    expect(set_size[~inner] == 0, "a leaf has a set of categories")
    expect(set_size <= _MOST_CATEGORY_WORDS, f"a set of categories goes beyond {MOST_CATEGORIES - 1}")
    first = arrays["value_begin"][~inner]
    leaf_width = np.repeat(width, np.diff(begin))[~inner]
    # Written so that no hostile number can overflow.
    expect((first >= 0) & (first <= sizes["values"] - leaf_width), "a leaf's values are out of range")
    if "gain_feature" in arrays:
        gain_feature = arrays["gain_feature"]
        expect(
            (gain_feature >= 0) & (gain_feature < n_features), "a gain is of a feature that does not exist"
        )
        expect(np.diff(gain_feature) > 0, "the features of the gains do not ascend")
        expect(np.isfinite(arrays["output_gain"]), "an output's gain is not finite")
