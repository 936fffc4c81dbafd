"""One tree from one round's gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf import _core
from polyleaf.constraints import SignMatrix
from polyleaf.data.inputs import FloatArray
from polyleaf.growth.sampling import ALL_FEATURES, FeatureSample
from polyleaf.growth.structure import Hessian, Structure

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


@dataclass(frozen=True)
class Tree:
    """A tree as arrays over its nodes.

    Nodes stand in the order best-first growth creates them: children after their parent, side by side.

    Attributes
    ----------
    feature : int32
        Which feature a node asks for; -1 in leaves.
    bin : int32
        Last bin that goes left.
    threshold : float64
        Rows with ``x[feature] <= threshold`` go left.
    missing_left : uint8
        1 where missing values go left.
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
    left: npt.NDArray[np.int32]
    gain: FloatArray
    cover: FloatArray
    count: npt.NDArray[np.int64]
    leaf: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    outputs: npt.NDArray[np.int32]
    gain_feature: npt.NDArray[np.int32] | None = None
    output_gain: FloatArray | None = None


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
        rows: npt.NDArray[np.uint32] | None = None,
        sample_weight: FloatArray | None = None,
        features: FeatureSample = ALL_FEATURES,
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
        rows : uint32 ndarray or None
            The sample to grow from, ascending.
        sample_weight : float64 ndarray of shape (rows,) or None
            Weights of the sampled rows while splits are found; leaf values then come from all rows, by their
            own weights.
        features : FeatureSample
            Which features may be used.
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
            hessian_mode=self._hessian,
            label=label,
            histogram_bytes=self._histogram_bytes,
            # The score of a full Hessian is no sum over outputs.
            output_gains=self._hessian != "exact" and gradient.shape[1] <= MOST_OUTPUT_GAINS,
            **features.arguments(),
            **self._settings,
        )
        return Tree(**arrays)

    def grow_sparse(
        self,
        labels: SparseLabels,
        weight: FloatArray | None,
        *,
        rows: npt.NDArray[np.uint32] | None = None,
        features: FeatureSample = ALL_FEATURES,
    ) -> Tree:
        """Return the tree for the present scores of sparse labels, and add it to them; see `grow`."""
        arrays = labels.core.grow(
            matrix=self._matrix, weight=weight, rows=rows, **features.arguments(), **self._settings
        )
        return Tree(**arrays)
