"""What ranks that train one model together need of each other: one primitive, and the errors of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

# What may be sent: anything contiguous that has the buffer interface.
Buffer = bytes | bytearray | memoryview | npt.NDArray[Any]
# What arrives: to be read, not written.
Received = bytes | memoryview


class Exchange(Protocol):
    """All to all between the ranks of a run. Every rank calls it equally often, in the same order.

    Attributes
    ----------
    rank : int
        Which one this is, from 0.
    size : int
        How many there are.
    """

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def exchange(self, parts: Sequence[Buffer]) -> list[Received]:
        """Send ``parts[r]`` to rank ``r``; return what each rank sent here, by rank.

        Blocks until all is here. What was sent to others may be overwritten afterwards; the own part comes
        back as a view of what was given.

        Raises
        ------
        PeerLost
            Another rank died, or is silent.
        PeerFailed
            Another rank raised an error, or ended before its time.
        Stopped
            Whoever began the run has stopped it.
        Fenced
            The others go on without this rank, or the run is over.
        """
        ...


class ExchangeError(RuntimeError):
    """An exchange between ranks that did not come about."""


class PeerLost(ExchangeError):
    """Another rank died, or is silent.

    Parameters
    ----------
    rank : int
        Which one.
    address : str
        Where it was.
    why : str
        How that was noticed.
    """

    def __init__(self, rank: int, address: str, why: str) -> None:
        super().__init__(rank, address, why)  # all of them: errors travel as pickles
        self.rank = rank
        self.address = address
        self.why = why

    def __str__(self) -> str:
        return f"rank {self.rank} at {self.address} is lost: {self.why}"


class PeerFailed(ExchangeError):
    """Another rank raised an error, or ended before its time.

    Parameters
    ----------
    rank : int
        Which one.
    why : str
        Its error in words.
    """

    def __init__(self, rank: int, why: str) -> None:
        super().__init__(rank, why)
        self.rank = rank
        self.why = why

    def __str__(self) -> str:
        return f"rank {self.rank} failed: {self.why}"


class Stopped(ExchangeError):
    """Whoever began the run has stopped it."""


class Fenced(ExchangeError):
    """The others go on without this rank, or the run is over."""


def checked_parts(parts: Sequence[Buffer], size: int) -> list[memoryview]:
    """Return the parts as bytes; raise where there is not one for each rank."""
    if len(parts) != size:
        raise ValueError(f"{len(parts)} parts for {size} ranks")
    return [as_bytes(part) for part in parts]


def as_bytes(part: Buffer) -> memoryview:
    """Return a view of the bytes of a contiguous buffer."""
    view = part.data if isinstance(part, np.ndarray) else memoryview(part)
    if not view.c_contiguous:
        raise ValueError("a part to send is not contiguous")
    # An array without numbers cannot be cast.
    return view.cast("B") if view.nbytes else memoryview(b"")
