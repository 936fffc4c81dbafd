"""What a run of the boosting loop is given: rows with targets, and all parameters filled in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from polyleaf.constraints import InteractionGroups, SignMatrix
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.sparse_tables import SparseTable
from polyleaf.data.weights import Weights
from polyleaf.growth.tree import TreeRules


@dataclass(frozen=True)
class Dataset:
    """Rows with coded targets, as the loss reads them.

    Attributes
    ----------
    name : str
        Key in ``evals_result_``.
    X : ndarray or csc_array of shape (rows, features)
        Any real dtype and strides.
    y : ndarray
        Class codes (int32), or float64 of shape (rows, outputs).
    weights : Weights
        Of rows and cells.
    """

    name: str
    X: Array | SparseTable
    y: Array
    weights: Weights

    def arrays(self) -> dict[str, Array | SparseTable | None]:
        """Return all values, by the names users know."""
        return {"X": self.X, "y": self.y, "sample_weight": self.weights.whole()}


@dataclass(frozen=True)
class Settings:
    """The parameters of a run, checked and with every default filled in."""

    n_estimators: int
    learning_rate: float
    max_depth: int | None
    max_leaves: int | None
    min_samples_leaf: int
    max_bins: int | None
    reg_lambda: float
    reg_alpha: float
    min_split_gain: float
    min_child_weight: float
    subsample: float
    sampling_method: str
    colsample_bytree: float
    colsample_bylevel: float
    colsample_bynode: float
    multi_strategy: str
    sparse_leaves: int | None
    sparse_mode: str
    sketch: str | None
    sketch_size: int
    hessian: str
    scale_targets: bool
    output_weight: FloatArray | None
    base_score: FloatArray | None
    categorical: npt.NDArray[np.uint8] | None
    seed: int
    n_threads: int
    device: str = "cpu"
    monotone: SignMatrix | None = None
    interaction: InteractionGroups | None = None

    def rules(self) -> TreeRules:
        """Return the part that growth needs."""
        return TreeRules(
            max_depth=self.max_depth,
            max_leaves=self.max_leaves,
            min_samples_leaf=self.min_samples_leaf,
            min_split_gain=self.min_split_gain,
            min_child_weight=self.min_child_weight,
            reg_lambda=self.reg_lambda,
            reg_alpha=self.reg_alpha,
            sparse_leaves=self.sparse_leaves,
            sparse_mode=self.sparse_mode,
            hessian=self.hessian,
        )
