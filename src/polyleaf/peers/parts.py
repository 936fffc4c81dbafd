"""Parts of histograms for their owners, who read them where they lie, or get them packed from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from polyleaf.peers.exchange import Buffer, ExchangeError, Received
from polyleaf.peers.host_memory import VECTOR_BYTES, OthersMemory, OwnMemory
from polyleaf.peers.packing import pack, unpack

Part = npt.NDArray[np.int32]
Gather = Callable[[bytes], Sequence[Received]]


class Parts:
    """Where the parts of one rank lie, and how they get to their owners.

    Parameters
    ----------
    rank, size : int
        Of the run.
    shared : bool
        Whether ranks on the same machine read parts where they lie. The same on all ranks.
    """

    def __init__(self, rank: int, size: int, shared: bool) -> None:
        self._rank = rank
        self._shared = shared and size > 1
        self._numbers: Part = np.empty(0, np.int32)
        self._own: OwnMemory | None = None  # has the numbers, where others read them
        self._others = {other: OthersMemory() for other in range(size) if other != rank}
        # Ranks whose memory is read here, and those that read the memory of this one.
        self._read: set[int] = set()
        self._readers: set[int] = set()

    def memory(self, n: int, gather: Gather) -> Part:
        """Return memory for so many numbers. All ranks ask together, the same.

        Parameters
        ----------
        n : int
            How many there will be.
        gather : callable (bytes) -> sequence of bytes
            Tells all ranks something; returns what each said.
        """
        if self._shared and not len(self._numbers):
            self._find_readers(gather)
            self._shared = bool(self._read or self._readers)
        if len(self._numbers) < n:
            self._numbers = np.empty(0, np.int32)  # given back first
            self._own = None
            if self._shared:
                self._own = self._new_memory(4 * n)
            self._numbers = _aligned(n) if self._own is None else self._own.bytes.view(np.int32)
        return self._numbers

    def sent(self, parts: Sequence[Part], n_threads: int) -> list[Buffer]:
        """Return what is sent to each rank for its part."""
        sent: list[Buffer] = []
        for rank, part in enumerate(parts):
            if rank == self._rank:
                sent.append(b"")
            elif self._own is not None and rank in self._readers:
                sent.append(self._own.place_of(part))
            else:
                sent.append(pack(part, n_threads))
        return sent

    def received(self, messages: Sequence[Received], like: Part, n_threads: int) -> list[Part]:
        """Return the parts of all other ranks for this one, which are like its own."""
        found = []
        for rank, message in enumerate(messages):
            if rank == self._rank:
                continue
            try:
                if rank in self._read:
                    found.append(self._others[rank].read(message).view(np.int32).reshape(like.shape))
                else:
                    found.append(unpack(message, like.shape, n_threads))
            except (OSError, ValueError) as error:
                raise ExchangeError(f"rank {rank} sent something else: {error}") from error
        return found

    @staticmethod
    def _new_memory(n_bytes: int) -> OwnMemory:
        try:
            return OwnMemory(n_bytes)
        except OSError as error:
            raise MemoryError(
                f"no {n_bytes / 2**20:.1f} MiB to share with workers on this machine: {error}"
            ) from error

    def _find_readers(self, gather: Gather) -> None:
        """Let all ranks try to read each other's memory."""
        try:
            trial = OwnMemory(0)
            place = trial.place_of(trial.bytes)
        except OSError:
            place = b""
        for rank, other in enumerate(gather(place)):
            if rank != self._rank and _can_read(self._others[rank], other):
                self._read.add(rank)
        said = gather(np.array(sorted(self._read), np.int64).tobytes())
        self._readers = {
            rank for rank, read in enumerate(said) if self._rank in np.frombuffer(read, np.int64).tolist()
        }


def _aligned(n: int) -> Part:
    """Return memory that begins where whole vectors may."""
    memory = np.empty(4 * n + VECTOR_BYTES, np.uint8)
    begin = -memory.ctypes.data % VECTOR_BYTES
    return memory[begin : begin + 4 * n].view(np.int32)


def _can_read(memory: OthersMemory, place: Received) -> bool:
    try:
        memory.read(place)
    except OSError:
        return False
    return True
