"""Which rows of a run are here."""

from __future__ import annotations

from dataclasses import dataclass

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
    """

    peers: Collectives
    n_rows: int
    runs: npt.NDArray[np.int64]

    def numbers(self, n_here: int) -> npt.NDArray[np.int64]:
        """Return the numbers of the rows here among all rows; `n_here`: how many there are."""
        lengths = np.diff(self.runs[:, 0], append=n_here)
        return np.arange(n_here) + np.repeat(self.runs[:, 1] - self.runs[:, 0], lengths)

    def places(self, numbers: npt.NDArray[np.integer], n_here: int) -> npt.NDArray[np.uint32]:
        """Return the places of those rows that are here, ascending; `numbers` are those of any rows.

        Parameters
        ----------
        numbers : ndarray of int
            Ascending, among the rows of all shards.
        n_here : int
            Rows of this shard.
        """
        found = []
        for k, (begin, number) in enumerate(self.runs):
            end = self.runs[k + 1, 0] if k + 1 < len(self.runs) else n_here
            first, last = np.searchsorted(numbers, [number, number + end - begin])
            found.append(numbers[first:last] - number + begin)
        places = np.concatenate(found) if found else np.empty(0)
        return places.astype(np.uint32)
