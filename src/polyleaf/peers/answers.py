"""What all ranks said together, noted: rows that are read again later, by one rank, get the same answers.

Whatever reads the rows of a shard asks the others for nothing but sums, extremes and lists, which are the
same for all ranks. With these noted, some of the rows can be read again anywhere, and become what they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from polyleaf.peers.collectives import Collectives, Numbers
from polyleaf.peers.exchange import Buffer, ExchangeError, Received


@dataclass
class Answers:
    """What came of the collectives that all ranks took part in, in their order.

    Attributes
    ----------
    n_ranks : int
        How many there were.
    given : list
        Of each collective: a list of bytes, by rank, or an array.
    """

    n_ranks: int
    given: list[list[bytes] | Numbers] = field(default_factory=list)


class Noted(Collectives):
    """Collectives that note what comes of them.

    Parameters
    ----------
    peers : Collectives
        What connects the ranks.
    answers : Answers
        Takes the notes.
    """

    def __init__(self, peers: Collectives, answers: Answers) -> None:
        self._peers = peers
        self._answers = answers

    @property
    def rank(self) -> int:
        return self._peers.rank

    @property
    def size(self) -> int:
        return self._peers.size

    def all_gather(self, part: Buffer) -> list[Received]:
        """Return what each rank gave, by rank."""
        said = self._peers.all_gather(part)
        self._answers.given.append([bytes(one) for one in said])
        return said

    def add(self, array: Numbers) -> None:
        """Replace an array by the sum over all ranks, in place."""
        self._peers.add(array)
        self._answers.given.append(array.copy())

    def largest(self, array: npt.NDArray[np.float64]) -> None:
        """Replace each number by the largest of all ranks, in place."""
        self._peers.largest(array)
        self._answers.given.append(array.copy())

    def all_to_all(self, parts: Sequence[Buffer]) -> list[Received]:
        """Refuse what is not the same for all ranks."""
        raise TypeError("what ranks send to one another cannot be answered again; sums and lists can")

    def exchange_parts(
        self, parts: Sequence[npt.NDArray[np.int32]], n_threads: int
    ) -> list[npt.NDArray[np.int32]]:
        """Refuse what is not the same for all ranks."""
        return self.all_to_all(parts)  # type: ignore[return-value]


class Remembered(Noted):
    """Collectives of one rank alone, which get the answers that all ranks got once.

    Parameters
    ----------
    answers : Answers
        What was noted.
    """

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._next = 0

    @property
    def rank(self) -> int:
        return 0

    @property
    def size(self) -> int:
        return self._answers.n_ranks

    def all_gather(self, part: Buffer) -> list[Received]:
        """Return what each rank gave, by rank."""
        said = self._answer()
        if not isinstance(said, list):
            raise ExchangeError("a list was asked for where a sum was noted")
        return list(said)

    def add(self, array: Numbers) -> None:
        """Replace an array by the sum over all ranks, in place."""
        said = self._answer()
        if isinstance(said, list) or said.shape != array.shape or said.dtype != array.dtype:
            raise ExchangeError("a sum was asked for where something else was noted")
        array[...] = said

    def largest(self, array: npt.NDArray[np.float64]) -> None:
        """Replace each number by the largest of all ranks, in place."""
        self.add(array)

    def _answer(self) -> list[bytes] | Numbers:
        if self._next == len(self._answers.given):
            raise ExchangeError("more was asked for than all ranks said")
        self._next += 1
        return self._answers.given[self._next - 1]
