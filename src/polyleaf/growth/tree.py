"""One tree from one round's gradients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from polyleaf import _core
from polyleaf.data.inputs import FloatArray

# Histograms kept for subtraction take at most this much memory, whatever the number of outputs. A node whose
# histogram is not kept costs its children a pass over their own rows; the tree is the same to the last bit.
HISTOGRAM_BYTES = 256 * 2**20

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
    """

    max_depth: int | None = 6
    max_leaves: int | None = None
    min_samples_leaf: int = 20
    min_split_gain: float = 0.0
    min_child_weight: float = 0.0
    reg_lambda: float = 1.0
    reg_alpha: float = 0.0


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
    values : float32 of shape (leaves, outputs)
        Learning rate applied.
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
        self._settings = {
            "max_depth": _UNLIMITED if rules.max_depth is None else rules.max_depth,
            "max_leaves": _UNLIMITED if rules.max_leaves is None else rules.max_leaves,
            "min_samples_leaf": rules.min_samples_leaf,
        }
        self._rules = rules
        self._learning_rate = learning_rate
        self._n_threads = n_threads
        self._histogram_bytes = histogram_bytes

    def grow(
        self,
        gradient: npt.NDArray[np.float32],
        hessian: npt.NDArray[np.float32] | None,
        weight: FloatArray | None,
        *,
        gain_weight: FloatArray,
        unit: FloatArray,
        raw: FloatArray | None = None,
        rows: npt.NDArray[np.uint32] | None = None,
        feature_mask: npt.NDArray[np.uint8] | None = None,
    ) -> Tree:
        """Return the tree for these gradients, and add it to `raw`.

        Parameters
        ----------
        gradient, hessian : float32 ndarray of shape (rows, outputs)
            Of the loss, unweighted, in multiples of `unit`. A Hessian of None is 1 everywhere.
        weight : float64 ndarray of shape (rows,) or None
            Weight of each row.
        gain_weight, unit : float64 ndarray of shape (outputs,)
            Share of each output in the split score; power of two that gradients and values are multiples of.
        raw : float64 ndarray of shape (rows, outputs) or None
            Predictions of the training rows, updated in place.
        rows : uint32 ndarray or None
            The sample to grow from, ascending.
        feature_mask : uint8 ndarray of shape (features,) or None
            1 where a feature may be used.
        """
        arrays = self._core.grow(
            matrix=self._matrix,
            gradient=gradient,
            hessian=hessian,
            weight=weight,
            gain_weight=gain_weight,
            unit=unit,
            rows=rows,
            feature_mask=feature_mask,
            raw=raw,
            min_split_gain=self._rules.min_split_gain,
            min_child_weight=self._rules.min_child_weight,
            reg_lambda=self._rules.reg_lambda,
            reg_alpha=self._rules.reg_alpha,
            learning_rate=self._learning_rate,
            histogram_bytes=self._histogram_bytes,
            n_threads=self._n_threads,
            **self._settings,
        )
        return Tree(**arrays)
