"""The fitted model: a forest as flat arrays, and prediction with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from polyleaf import _core
from polyleaf.data.binned_rows import BinnedRows
from polyleaf.data.dataset import FeatureTable
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sparse_formats import SparseTable
from polyleaf.data.sparse_tables import DenseRows
from polyleaf.data.streamed_table import StreamedTable
from polyleaf.growth.label_sparse import SparseLabels
from polyleaf.growth.tree import Tree, joined_arrays
from polyleaf.model.forest_checks import CATEGORY_ARRAYS, LAYOUT, OPTIONAL, check_arrays

# What predictions are made of.
_PREDICTING = (
    "node_begin",
    "tree_output",
    "tree_width",
    "feature",
    "threshold",
    "missing_left",
    "category_begin",
    "category_bits",
    "left",
    "value_begin",
    "values",
    "value_output",
)
# What trees have under the same names.
_OF_TREES = (
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
_TREES_TOGETHER = 16  # whose leaves are looked up together
# Leaves of rows, one for each tree, that are looked up together: 64 MB.
_LEAVES_TOGETHER = 1 << 24


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
    # The last one asked for, and what for: laying out the ways to the leaves takes longer than a row.
    explainer: tuple[object, _core.ForestExplainer] | None = field(
        default=None, init=False, repr=False, compare=False
    )
    # By device; and what explains it there.
    on_gpu: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

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
        """Return the forest of these trees, each with the first output it adds to.

        That of a single tree has the arrays of this tree, not copies of them.
        """
        shape: dict[str, Any] = {
            "n_features": n_features,
            "n_outputs": len(base_score),
            "trees_per_round": trees_per_round,
            "base_score": base_score,
            "unit": unit,
        }
        if len(trees) == 1:  # of a round, which is measured at once
            return cls(**shape, **_arrays_of_tree(*trees[0]))
        outputs = np.array([output for _, output in trees], dtype=np.int32)
        return cls(**shape, tree_output=outputs, **_arrays_of_trees([tree for tree, _ in trees]))

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
                for name, (_, over) in LAYOUT.items()
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

    def trees_up_to(self, n_rounds: int | None) -> int:
        """Return how many trees the first rounds have (None: all)."""
        return self.n_trees if n_rounds is None else n_rounds * self.trees_per_round

    def predict_raw(
        self,
        X: FeatureTable,
        n_rounds: int | None = None,
        n_threads: int = 1,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Return the raw scores, float64 of shape (rows, outputs), after `n_rounds` rounds (None: all).

        Where `out` is given, they are written to it.
        """
        raw = self._start(X.shape[0], n_threads, out)
        if isinstance(X, np.ndarray):  # one call less where a single row counts
            self._predictor.add(X, 0, self.trees_up_to(n_rounds), raw, n_threads)
        else:
            self._add(X, 0, self.trees_up_to(n_rounds), raw, n_threads)
        return self._finish(raw, n_threads)

    def predict_raw_binned(
        self, matrix: _core.BinnedMatrix, n_rounds: int | None = None, n_threads: int = 1
    ) -> FloatArray:
        """Return what `predict_raw` would for the rows of a binned table, from their codes.

        Raises
        ------
        ValueError
            When a threshold is no cut point of the table, so that the side of a row does not follow from its
            bin, or other features are categorical.
        """
        raw = self._start(matrix.n_rows, n_threads)
        self._predictor.add_binned(matrix, 0, self.trees_up_to(n_rounds), raw, n_threads)
        return self._finish(raw, n_threads)

    def add_round_to(self, X: FeatureTable, number: int, score: FloatArray, n_threads: int = 1) -> None:
        """Add the trees of one round to scores that are kept in units."""
        begin = number * self.trees_per_round
        self._add(X, begin, begin + self.trees_per_round, score, n_threads)

    def add_round_to_sparse(
        self, X: FeatureTable, number: int, labels: SparseLabels, n_threads: int = 1
    ) -> None:
        """Add the trees of one round to the scores of sparse labels."""
        begin = number * self.trees_per_round
        self._add_to_sparse(X, begin, begin + self.trees_per_round, labels, n_threads)

    def add_to_sparse(
        self, X: FeatureTable | _core.BinnedMatrix, labels: SparseLabels, n_threads: int = 1
    ) -> None:
        """Add all trees, whose leaves must be sparse, to the scores of sparse labels."""
        self._add_to_sparse(X, 0, self.n_trees, labels, n_threads)

    def _add_to_sparse(
        self,
        X: FeatureTable | _core.BinnedMatrix,
        begin: int,
        last: int,
        labels: SparseLabels,
        n_threads: int,
    ) -> None:
        for first in range(begin, last, _TREES_TOGETHER):
            end = min(first + _TREES_TOGETHER, last)
            leaves = self._apply(X, first, end, n_threads)
            for tree in range(first, end):
                of_nodes = self.value_begin[self.node_begin[tree] : self.node_begin[tree + 1]]
                width = int(self.tree_width[tree])
                low = of_nodes[of_nodes >= 0].min()
                part = slice(low, of_nodes.max() + width)
                of_rows = of_nodes[leaves[:, tree - first]] - low
                labels.add(of_rows, self.values[part], self.value_output[part], width, n_threads)

    def staged_raw(
        self, X: FeatureTable, n_threads: int = 1, n_rounds: int | None = None
    ) -> Iterator[FloatArray]:
        """Yield the raw scores after each round, a new array each time."""
        raw = self._start(X.shape[0], n_threads)
        table = DenseRows(X, self.used_features) if scipy.sparse.issparse(X) else X
        for begin in range(0, self.trees_up_to(n_rounds), self.trees_per_round):
            self._add(table, begin, begin + self.trees_per_round, raw, n_threads)
            yield self._finish(raw.copy(), n_threads)

    def apply(
        self, X: FeatureTable, n_rounds: int | None = None, n_threads: int = 1
    ) -> npt.NDArray[np.int32]:
        """Return, per row and tree, the node (counted within its tree) of the leaf the row falls into."""
        n_trees = self.trees_up_to(n_rounds)
        if n_trees == 0:
            return np.empty((X.shape[0], 0), dtype=np.int32)
        return self._apply(X, 0, n_trees, n_threads)

    @cached_property
    def scores_are_sparse(self) -> bool:
        """Whether all outputs have a score of 0 but those that the leaves of a row name."""
        return len(self.value_output) > 0 and self._units_are_one and not self.base_score.any()

    def best_outputs(
        self, X: Array | SparseTable | BinnedRows, k: int, n_rounds: int | None = None, n_threads: int = 1
    ) -> npt.NDArray[np.int32]:
        """Return the k outputs with the largest raw scores of each row, where `scores_are_sparse`.

        The best comes first; of equal ones the lower. No score of other outputs is computed.
        """
        best = np.empty((X.shape[0], k), dtype=np.int32)
        for rows, leaves in self._leaves_of_blocks(X, n_rounds, n_threads):
            best[rows] = self._predictor.best_outputs(leaves, 0, self.n_outputs, k, n_threads)
        return best

    def outputs_above(
        self,
        X: Array | SparseTable | BinnedRows,
        threshold: float,
        n_rounds: int | None = None,
        n_threads: int = 1,
    ) -> Any:
        """Return 1 where a raw score is above the threshold, not below 0, as a CSR array of int64.

        As in `best_outputs`, `scores_are_sparse`.
        """
        blocks = [scipy.sparse.csr_array((0, self.n_outputs), dtype=np.int64)]
        for rows, leaves in self._leaves_of_blocks(X, n_rounds, n_threads):
            begin, output = self._predictor.outputs_above(leaves, 0, self.n_outputs, threshold, n_threads)
            ones = np.ones(len(output), dtype=np.int64)
            shape = (rows.stop - rows.start, self.n_outputs)
            blocks.append(scipy.sparse.csr_array((ones, output, begin), shape=shape))
        return scipy.sparse.csr_array(scipy.sparse.vstack(blocks, format="csr"))

    def _leaves_of_blocks(
        self, X: Array | SparseTable | BinnedRows, n_rounds: int | None, n_threads: int
    ) -> Iterator[tuple[slice, npt.NDArray[np.int32]]]:
        """Yield some rows at a time, and the node of the leaf that each reaches in each tree."""
        table: Any = scipy.sparse.csr_array(X) if scipy.sparse.issparse(X) else X
        step = max(1, _LEAVES_TOGETHER // max(1, self.n_trees))
        for begin in range(0, X.shape[0], step):
            rows = slice(begin, min(begin + step, X.shape[0]))
            if isinstance(X, BinnedRows):
                block: Any = X.take(np.arange(rows.start, rows.stop), n_threads)
            else:
                block = table[rows]
            yield rows, self.apply(block, n_rounds, n_threads)

    def _apply(
        self, X: FeatureTable | _core.BinnedMatrix, begin: int, end: int, n_threads: int
    ) -> npt.NDArray[np.int32]:
        """Return the leaves in trees [begin, end), of a sparse or streamed table some rows at a time."""
        if isinstance(X, np.ndarray):
            return self._predictor.apply(X, begin, end, n_threads)
        if isinstance(X, BinnedRows | _core.BinnedMatrix):
            matrix = X.matrix if isinstance(X, BinnedRows) else X
            return self._predictor.apply_binned(matrix, begin, end, n_threads)
        predictor = self.on_used_features._predictor
        leaves = np.empty((X.shape[0], end - begin), dtype=np.int32)
        for rows, block in self._dense_rows(X):
            leaves[rows] = predictor.apply(block, begin, end, n_threads)
        return leaves

    def _add(
        self, X: FeatureTable | DenseRows, begin: int, end: int, raw: FloatArray, n_threads: int
    ) -> None:
        """Add trees [begin, end) to scores in units, of a sparse or streamed table some rows at a time."""
        if isinstance(X, np.ndarray):
            self._predictor.add(X, begin, end, raw, n_threads)
            return
        if isinstance(X, BinnedRows):
            self._predictor.add_binned(X.matrix, begin, end, raw, n_threads)
            return
        predictor = self.on_used_features._predictor
        for rows, block in X if isinstance(X, DenseRows) else self._dense_rows(X):
            predictor.add(block, begin, end, raw[rows], n_threads)

    def _dense_rows(self, X: FeatureTable) -> Iterable[tuple[slice, Array]]:
        """Return blocks of rows of the used features."""
        if isinstance(X, StreamedTable):
            return X.rows_of(self.used_features)
        assert not isinstance(X, np.ndarray | BinnedRows)
        return DenseRows(X, self.used_features)

    @cached_property
    def used_features(self) -> npt.NDArray[np.int32]:
        """The features that a split asks for, ascending; never none, as a table has a column."""
        used = np.unique(self.feature[self.left >= 0])
        return used if len(used) > 0 else np.zeros(1, dtype=np.int32)

    @cached_property
    def on_used_features(self) -> Forest:
        """The same forest for tables that hold the used features only: sparse tables have many more."""
        used = self.used_features
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

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything as plain arrays."""
        without = {"shape", *(CATEGORY_ARRAYS if len(self.category_bits) == 0 else ())}
        arrays = {name: getattr(self, name) for name in LAYOUT if name not in without}
        arrays["shape"] = np.array([self.n_features, self.n_outputs, self.trees_per_round], dtype=np.int64)
        arrays |= {name: getattr(self, name) for name in OPTIONAL if getattr(self, name) is not None}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Forest:
        """Return the forest of these arrays, after checking that no prediction can go astray.

        Raises
        ------
        ValueError
            An array is missing, superfluous, of the wrong type or size, or points outside of the forest.
        """
        if not any(name in arrays for name in CATEGORY_ARRAYS):
            n_nodes = len(arrays["feature"]) if "feature" in arrays else 0
            arrays = dict(arrays) | {
                "category_begin": np.zeros(n_nodes + 1, np.int64),
                "category_bits": np.empty(0, np.uint32),
            }
        check_arrays(arrays)
        n_features, n_outputs, trees_per_round = (int(v) for v in arrays["shape"])
        return cls(
            n_features=n_features,
            n_outputs=n_outputs,
            trees_per_round=trees_per_round,
            **{name: np.ascontiguousarray(array) for name, array in arrays.items() if name != "shape"},
        )

    def __getstate__(self) -> dict[str, Any]:
        without: dict[str, Any] = {"_packed": None, "explainer": None, "on_gpu": {}}
        return {f.name: getattr(self, f.name) for f in fields(self)} | without

    @property
    def _predictor(self) -> _core.ForestPredictor:
        if self._packed is None:
            self._packed = _core.ForestPredictor({name: getattr(self, name) for name in _PREDICTING})
        return self._packed

    # Scores are summed in units. These are powers of two, so that the sum has the bits it had in training.
    def _start(self, n_rows: int, n_threads: int, out: FloatArray | None = None) -> FloatArray:
        raw = np.empty((n_rows, self.n_outputs)) if out is None else out
        _core.start_scores(self._base_in_units, raw, n_threads)
        return raw

    def _finish(self, raw: FloatArray, n_threads: int) -> FloatArray:
        if not self._units_are_one:
            _core.scale_scores(self.unit, raw, n_threads)
        return raw

    @cached_property
    def _base_in_units(self) -> FloatArray:
        return self.base_score / self.unit

    @cached_property
    def _units_are_one(self) -> bool:
        return bool((self.unit == 1).all())


def _arrays_of_tree(tree: Tree, output: int) -> dict[str, Any]:
    """Return the arrays of the forest of one tree, which adds to the outputs from this one on."""
    n_nodes, width = len(tree.feature), tree.values.shape[1]
    arrays: dict[str, Any] = {name: getattr(tree, name) for name in _OF_TREES}
    arrays["values"] = tree.values.ravel()
    return arrays | {
        "node_begin": np.array([0, n_nodes], dtype=np.int64),
        "tree_output": np.array([output], dtype=np.int32),
        "tree_width": np.array([width], dtype=np.int32),
        "category_begin": tree.category_begin,
        "value_begin": np.where(tree.leaf >= 0, tree.leaf.astype(np.int64) * width, -1),
        "value_output": tree.outputs.ravel(),
    }


def _arrays_of_trees(trees: Sequence[Tree]) -> dict[str, Any]:
    """Return the arrays of the forest of some trees, but for the outputs that they add to."""
    if not trees:
        empty = (*_OF_TREES, "value_begin", "value_output", "tree_width")
        begin = np.zeros(1, dtype=np.int64)
        arrays: dict[str, Any] = {name: np.empty(0, LAYOUT[name][0]) for name in empty}
        return arrays | {"node_begin": begin, "category_begin": begin}
    leaf, n_nodes = joined_arrays(trees, "leaf")
    values, n_values = joined_arrays(trees, "values")
    widths = n_values // ((n_nodes + 1) // 2)  # each split has two children
    first_values = np.cumsum(n_values) - n_values
    value_of_leaf = np.repeat(first_values, n_nodes) + leaf.astype(np.int64) * np.repeat(widths, n_nodes)
    begins, n_begins = joined_arrays(trees, "category_begin")
    set_sizes = np.delete(np.diff(begins), np.cumsum(n_begins)[:-1] - 1)
    joined = {name: joined_arrays(trees, name)[0] for name in _OF_TREES if name != "values"}
    return joined | {
        "values": values,
        "node_begin": np.append(0, np.cumsum(n_nodes)),
        "tree_width": widths.astype(np.int32),
        "category_begin": np.append(0, np.cumsum(set_sizes)),
        "value_begin": np.where(leaf >= 0, value_of_leaf, -1),
        "value_output": joined_arrays(trees, "outputs")[0],
    }
