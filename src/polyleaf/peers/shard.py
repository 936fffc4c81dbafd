"""Which rows of a run are here."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from polyleaf.peers.collectives import Collectives


@dataclass(frozen=True)
class Shard:
    """The part of a run's rows that is here; the others are where the same code runs on them.

    Attributes
    ----------
    peers : Collectives
        What connects the shards.
    n_rows : int
        Rows of all shards.
    runs : int64 ndarray of shape (runs, 2)
        Places of rows here, ascending from 0, each with its number among all rows; the rows up to the next
        place have the numbers that follow.
    pieces : int64 ndarray of shape (pieces, 2)
        The pieces of the table that the rows come from, one after the other: the place of each among all
        pieces, and its rows. Empty where nobody asks for them.
    """

    peers: Collectives
    n_rows: int
    runs: npt.NDArray[np.int64]
    pieces: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))

    def numbers(self, n_here: int) -> npt.NDArray[np.int64]:
        """Return the numbers of the rows here among all rows; `n_here`: how many there are."""
        lengths = np.diff(self.runs[:, 0], append=n_here)
        return np.arange(n_here) + np.repeat(self.runs[:, 1] - self.runs[:, 0], lengths)

    def followed_by(self, other: Shard) -> Shard:
        """Return these rows, and those of other pieces of the same table below them."""
        below = other.runs + np.array([self.pieces[:, 1].sum(), 0])
        return replace(
            self,
            runs=np.concatenate([self.runs, below]),
            pieces=np.concatenate([self.pieces, other.pieces]),
        )

    def of_pieces(self, wanted: Collection[int]) -> tuple[Shard, npt.NDArray[np.uint32]]:
        """Return the rows of some of the pieces, and their places."""
        chosen = np.isin(self.pieces[:, 0], list(wanted))
        pieces = self.pieces[chosen]
        places = np.flatnonzero(np.repeat(chosen, self.pieces[:, 1]))
        # Every piece that has rows is a run.
        numbers = self.runs[chosen[self.pieces[:, 1] > 0], 1]
        begins = (np.cumsum(pieces[:, 1]) - pieces[:, 1])[pieces[:, 1] > 0]
        runs = np.column_stack([begins, numbers]).astype(np.int64).reshape(-1, 2)
        return replace(self, runs=runs, pieces=pieces), places.astype(np.uint32)
