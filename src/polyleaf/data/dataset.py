"""Rows with their targets and weights, as a run of the boosting loop is given them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

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

    def connected(self, peers: Collectives) -> Dataset:
        """Return the rows of a shard, connected with the others by `peers` from now on."""
        assert self.shard is not None
        return replace(self, shard=replace(self.shard, peers=peers))

    def of_pieces(self, wanted: Collection[int], n_threads: int = 1) -> Dataset:
        """Return the rows of a shard that come from some of its pieces."""
        assert self.shard is not None
        shard, rows = self.shard.of_pieces(wanted)
        if len(shard.pieces) == len(self.shard.pieces):
            return self
        X = self.X.take(rows, n_threads) if isinstance(self.X, BinnedRows) else _array_of(self.X)[rows]
        return replace(self, X=X, y=self.y[rows], weights=self.weights.take(rows), shard=shard)

    def followed_by(self, other: Dataset, n_threads: int = 1) -> Dataset:
        """Return the rows of a shard, and those of other pieces of the same table below them."""
        assert self.shard is not None
        assert other.shard is not None
        if isinstance(self.X, BinnedRows):
            assert isinstance(other.X, BinnedRows)
            X: FeatureTable = self.X.followed_by(other.X, n_threads)
        else:
            X = np.concatenate([_array_of(self.X), _array_of(other.X)])
        return replace(
            self,
            X=X,
            y=np.concatenate([self.y, other.y]),
            weights=self.weights.followed_by(other.weights),
            shard=self.shard.followed_by(other.shard),
        )


def _array_of(X: FeatureTable) -> Array:
    """Return the numbers of rows in a shard, which are in memory and dense."""
    assert isinstance(X, np.ndarray)
    return X
