"""Where the rows of a shard come from: pieces of a table whose others are elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from polyleaf.peers.collectives import Collectives
from polyleaf.peers.shard import Shard

MOST_ROWS = 1 << 30  # of all shards together


@dataclass(frozen=True)
class Pieces:
    """Pieces of a table that are here, one after the other.

    Attributes
    ----------
    peers : Collectives
        What connects the shards.
    number : tuple of int
        The place of each piece among those of the whole table, ascending.
    n_rows : tuple of int
        Rows of each.
    """

    peers: Collectives
    number: tuple[int, ...]
    n_rows: tuple[int, ...]

    def first_rows(self) -> tuple[int, ...]:
        """Return the number of the first row of each piece among those of the whole table."""
        first, _ = self._first_rows(np.array(self.n_rows, dtype=np.int64))
        return first

    def _first_rows(self, n_rows: npt.NDArray[np.int64]) -> tuple[tuple[int, ...], int]:
        """Return the numbers of the first rows of pieces that have so many, and how many all pieces have."""
        here = np.column_stack([np.array(self.number, dtype=np.int64), n_rows]).reshape(-1, 2)
        everywhere = [np.frombuffer(part, dtype=np.int64) for part in self.peers.all_gather(here)]
        sizes = np.concatenate(everywhere).reshape(-1, 2)
        sizes = sizes[np.argsort(sizes[:, 0])]
        first = dict(zip(sizes[:, 0].tolist(), (np.cumsum(sizes[:, 1]) - sizes[:, 1]).tolist(), strict=True))
        return tuple(first[number] for number in self.number), int(sizes[:, 1].sum())

    def shard(self, kept: npt.NDArray[np.bool_] | None) -> Shard:
        """Return which rows of the table are here; those not kept (None: all are) are not counted at all."""
        begins = np.concatenate([[0], np.cumsum(self.n_rows)]).astype(np.int64)
        if kept is not None:
            before = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
            begins = before[begins]
        lengths = np.diff(begins)
        first, n_rows = self._first_rows(lengths)
        if n_rows > MOST_ROWS:
            raise ValueError(
                f"the table has {n_rows:,} rows; at most {MOST_ROWS:,} are allowed, as sums have 31 bits."
            )
        runs = [
            (begin, number)
            for begin, number, length in zip(begins[:-1].tolist(), first, lengths.tolist(), strict=True)
            if length > 0
        ]
        here = np.column_stack([np.array(self.number, dtype=np.int64), lengths]).reshape(-1, 2)
        return Shard(self.peers, n_rows, np.array(runs, dtype=np.int64).reshape(-1, 2), here)


def shard_of_rows(shard: Shard, places: npt.NDArray[np.integer]) -> Shard:
    """Return which rows of a choice are here; all shards choose some of theirs, and call it.

    Parameters
    ----------
    shard : Shard
        The rows here, with the pieces that they come from.
    places : ndarray of int
        Of those chosen, ascending.
    """
    begins = np.concatenate([[0], np.cumsum(shard.pieces[:, 1])])
    n_rows = np.diff(np.searchsorted(places, begins))
    return Pieces(shard.peers, tuple(shard.pieces[:, 0].tolist()), tuple(n_rows.tolist())).shard(None)
