"""One tree from one round's gradients."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf import _core
from polyleaf.data.inputs import FloatArray
from polyleaf.growth.sampling import ALL_FEATURES, FeatureSample
from polyleaf.growth.structure import Hessian, Structure
from polyleaf.params.constraints import SignMatrix
from polyleaf.params.settings import Settings

# Histograms kept for subtraction take at most this much memory, whatever the number of outputs. A node whose
# histogram is not kept costs its children a pass over their own rows; the tree is the same to the last bit.
HISTOGRAM_BYTES = 256 * 2**20

# With more outputs, the table of what each gains by each feature would take too much memory.
MOST_OUTPUT_GAINS = 1024

_UNLIMITED = 2**30


@dataclass(frozen=True)
class TreeRules:
    """When a node is split, and what its leaves say.

    Attributes
    ----------
    max_depth, max_leaves : int or None
        None: no limit.
    min_samples_leaf : int
        Rows in a child, whatever their weight.
    min_split_gain : float
        A split's gain, averaged over the outputs, must be larger.
    min_child_weight : float
        Least mean over the outputs of a child's Hessian.
    reg_lambda, reg_alpha : float
        L2 and L1 regularisation of the leaf values.
    sparse_leaves : int or None
        Outputs a leaf says something about (k of the paper's sparse objective); None: all.
    sparse_mode : {"restricted", "unrestricted"}
        Whether the children of a split share their outputs (Algorithm 4) or choose their own (Algorithm 3).
    hessian : {"diagonal", "shared", "exact", "exact_leaf"}
        "exact": splits and leaves use the full Hessian (eq. 13 and 14); "exact_leaf": leaves only.
    """

    max_depth: int | None = 6
    max_leaves: int | None = None
    min_samples_leaf: int = 20
    min_split_gain: float = 0.0
    min_child_weight: float = 0.0
    reg_lambda: float = 1.0
    reg_alpha: float = 0.0
    sparse_leaves: int | None = None
    sparse_mode: str = "restricted"
    hessian: str = "diagonal"

    @classmethod
    def of(cls, settings: Settings) -> TreeRules:
        """Return those among the settings of a run."""
        return cls(**{one.name: getattr(settings, one.name) for one in fields(cls)})


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
    gain_feature: npt.NDArray[np.int32] | None = None
    output_gain: FloatArray | None = None


@dataclass(frozen=True)
class Renewal:
    """Leaf values that are quantiles of the residuals y - raw, once the structure of a tree stands.

    Attributes
    ----------
    level : float64 ndarray of shape (outputs,)
        Which quantile; NaN: the output's values stay those of the gradients.
    y : float64 ndarray of shape (rows, columns)
        Targets of all rows.
    column : int32 ndarray of shape (outputs,)
        The column of `y` that each output predicts.
    cell_weight : float64 ndarray of shape (rows, outputs) or None
        Weights of the residuals; None: those of the rows.
    """

    level: FloatArray
    y: FloatArray
    column: npt.NDArray[np.int32]
    cell_weight: FloatArray | None = None

    def of_outputs(self, part: slice) -> Renewal | None:
        """Return the renewal of some outputs; None where none of them is renewed."""
        level = self.level[part]
        if np.isnan(level).all():
            return None
        weight = None if self.cell_weight is None else self.cell_weight[:, part]
        return Renewal(level, self.y, self.column[part], weight)


class SparseLabels:
    """Labels, and the scores of a growing forest, in compressed rows (GBDT-sparse).

    Parameters
    ----------
    row_begin, label : ndarray
        As ``indptr`` and ``indices`` of a CSR matrix with ascending columns.
    n_outputs : int
        Number of labels.
    """

    def __init__(self, row_begin: npt.NDArray[Any], label: npt.NDArray[Any], n_outputs: int) -> None:
        self.core = _core.SparseLabels(row_begin.astype(np.int64), label.astype(np.int32), n_outputs)

    def add(
        self,
        value_begin: npt.NDArray[np.int64],
        values: npt.NDArray[np.float32],
        value_output: npt.NDArray[np.int32],
        width: int,
        n_threads: int,
    ) -> None:
        """Add a tree that was grown before to the scores.

        Parameters
        ----------
        value_begin : int64 ndarray of shape (rows,)
            Where the values of each row's leaf begin.
        values, value_output : ndarray
            Values, and the outputs they belong to, as in :class:`polyleaf.model.forest.Forest`.
        width : int
            Values of a leaf.
        n_threads : int
            Number of threads.
        """
        self.core.add(value_begin, values, value_output, width, n_threads)


class TreeGrower:
    """Grows trees on one binned table.

    Parameters
    ----------
    matrix : BinnedMatrix
        The table.
    rules : TreeRules
        The same for every tree.
    learning_rate : float
        Factor of the leaf values.
    n_threads : int
        Affects the time only, never a bit of the result.
    histogram_bytes : int
        Memory for histograms kept for subtraction. Affects the time only.
    """

    def __init__(
        self,
        matrix: _core.BinnedMatrix,
        rules: TreeRules,
        learning_rate: float,
        n_threads: int,
        histogram_bytes: int = HISTOGRAM_BYTES,
    ) -> None:
        self._matrix = matrix
        self._core = _core.TreeGrower()
        # What all growers of the core take.
        self._settings: dict[str, Any] = {
            "max_depth": _UNLIMITED if rules.max_depth is None else rules.max_depth,
            "max_leaves": _UNLIMITED if rules.max_leaves is None else rules.max_leaves,
            "min_samples_leaf": rules.min_samples_leaf,
            "min_split_gain": rules.min_split_gain,
            "min_child_weight": rules.min_child_weight,
            "reg_lambda": rules.reg_lambda,
            "reg_alpha": rules.reg_alpha,
            "sparse_leaves": rules.sparse_leaves or 0,
            "restricted": rules.sparse_mode == "restricted",
            "learning_rate": learning_rate,
            "n_threads": n_threads,
        }
        self._hessian = rules.hessian
        self._histogram_bytes = histogram_bytes

    def grow(
        self,
        gradient: npt.NDArray[np.float32],
        hessian: Hessian,
        weight: FloatArray | None,
        *,
        gain_weight: FloatArray,
        unit: FloatArray,
        structure: Structure | None = None,
        label: npt.NDArray[np.int32] | None = None,
        raw: FloatArray | None = None,
        leaf_of_row: npt.NDArray[np.uint32] | None = None,
        rows: npt.NDArray[np.uint32] | None = None,
        sample_weight: FloatArray | None = None,
        features: FeatureSample = ALL_FEATURES,
        learning_rate: float | None = None,
        renewal: Renewal | None = None,
        monotone: SignMatrix | None = None,
    ) -> Tree:
        """Return the tree for these gradients, and add it to `raw`.

        Parameters
        ----------
        gradient, hessian : float32 ndarray of shape (rows, outputs)
            Of the loss, unweighted, in multiples of `unit`. A Hessian may also be the name of the rule that
            makes it from the gradient (with a `structure`), or None: 1 everywhere.
        weight : float64 ndarray of shape (rows,) or None
            Weight of each row.
        gain_weight, unit : float64 ndarray of shape (outputs,)
            Share of each output in the split score; power of two that gradients and values are multiples of.
        structure : Structure or None
            What splits are found on instead; None: these gradients.
        label : int32 ndarray of shape (rows,) or None
            Class codes, which the full Hessian needs.
        raw : float64 ndarray of shape (rows, outputs) or None
            Predictions of the training rows, updated in place.
        leaf_of_row : uint32 ndarray of shape (rows,) or None
            Set to the leaf of each training row.
        rows : uint32 ndarray or None
            The sample to grow from, ascending.
        sample_weight : float64 ndarray of shape (rows,) or None
            Weights of the sampled rows while splits are found; leaf values then come from all rows, by their
            own weights.
        features : FeatureSample
            Which features may be used.
        learning_rate : float or None
            Of this tree; None: that of the grower.
        renewal : Renewal or None
            Outputs whose leaf values are quantiles of the residuals instead; needs `raw`.
        monotone : int8 ndarray of shape (features, outputs) or None
            Whether a value may only rise (1) or fall (-1) with a feature. Needs a structure of all outputs.
        """
        stored, rule = (None, hessian) if isinstance(hessian, str) else (hessian, "itself")
        if structure is None:
            assert rule == "itself"
            structure = Structure(gradient, stored, None, gain_weight, unit)
        arrays = self._core.grow(
            matrix=self._matrix,
            gradient=gradient,
            hessian=stored,
            hessian_rule=rule,
            weight=weight,
            unit=unit,
            structure_gradient=structure.gradient,
            structure_hessian=structure.hessian,
            structure_curvature=structure.curvature,
            structure_weight=weight if sample_weight is None else sample_weight,
            gain_weight=structure.gain_weight,
            structure_unit=structure.unit,
            rows=rows,
            all_rows_in_leaves=sample_weight is not None,
            monotone=None if monotone is None or not monotone.any() else np.ascontiguousarray(monotone),
            raw=raw,
            leaf_of_row=leaf_of_row,
            hessian_mode=self._hessian,
            label=label,
            renew_level=None if renewal is None else renewal.level,
            renew_y=None if renewal is None else renewal.y,
            renew_column=None if renewal is None else renewal.column,
            renew_weight=None if renewal is None else renewal.cell_weight,
            histogram_bytes=self._histogram_bytes,
            # The score of a full Hessian is no sum over outputs.
            output_gains=self._hessian != "exact" and gradient.shape[1] <= MOST_OUTPUT_GAINS,
            **features.arguments(),
            **self._settings_with(learning_rate),
        )
        return Tree(**arrays)

    def grow_sparse(
        self,
        labels: SparseLabels,
        weight: FloatArray | None,
        *,
        rows: npt.NDArray[np.uint32] | None = None,
        features: FeatureSample = ALL_FEATURES,
        learning_rate: float | None = None,
    ) -> Tree:
        """Return the tree for the present scores of sparse labels, and add it to them; see `grow`."""
        arrays = labels.core.grow(
            matrix=self._matrix,
            weight=weight,
            rows=rows,
            **features.arguments(),
            **self._settings_with(learning_rate),
        )
        return Tree(**arrays)

    def _settings_with(self, learning_rate: float | None) -> dict[str, Any]:
        if learning_rate is None:
            return self._settings
        return self._settings | {"learning_rate": learning_rate}
