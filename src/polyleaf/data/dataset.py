"""Rows with their targets and weights, as a run of the boosting loop is given them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from polyleaf.data.binned_rows import BinnedRows
from polyleaf.data.inputs import Array
from polyleaf.data.sparse_formats import SparseTable
from polyleaf.data.streamed_table import StreamedTable
from polyleaf.data.weights import Weights
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.shard import Shard

FeatureTable: TypeAlias = "Array | SparseTable | StreamedTable | BinnedRows"


@dataclass(frozen=True)
class Dataset:
    """Rows with coded targets, as the loss reads them.

    Attributes
    ----------
    name : str
        Key in ``evals_result_``.
    X : ndarray, csc_array, StreamedTable or BinnedRows of shape (rows, features)
        Any real dtype and strides. Only the training rows may be streamed; others are binned only where
        these are.
    y : ndarray
        Class codes (int32), or float64 of shape (rows, outputs).
    weights : Weights
        Of rows and cells.
    shard : Shard or None
        Which of the rows of a run these are; None: all.
    """

    name: str
    X: FeatureTable
    y: Array
    weights: Weights
    shard: Shard | None = None

    @property
    def peers(self) -> Collectives | None:
        """What connects these rows with those elsewhere."""
        return None if self.shard is None else self.shard.peers

    @property
    def n_rows(self) -> int:
        """Rows, those of all shards where there are several."""
        return self.X.shape[0] if self.shard is None else self.shard.n_rows

    def arrays(self) -> dict[str, FeatureTable | None]:
        """Return all values, by the names users know."""
        return {"X": self.X, "y": self.y, "sample_weight": self.weights.whole()}
