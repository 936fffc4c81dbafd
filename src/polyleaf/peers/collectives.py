"""Sums, extremes and lists over all ranks, on top of any exchange."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.peers.exchange import Buffer, Exchange, ExchangeError, Received, as_bytes
from polyleaf.peers.parts import Part, Parts

# Up to here everybody gets everything: one exchange takes less time than two that send less.
_SMALL_BYTES = 1 << 17
_SUMMED = (np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.float64))

Numbers = npt.NDArray[np.int32] | npt.NDArray[np.int64] | npt.NDArray[np.float64]


class Collectives:
    """What all ranks do together.

    Every rank calls the same methods in the same order, with arrays of the same shape. Ranks are taken in
    their order, whatever arrives first: every rank gets the same bits.

    Parameters
    ----------
    exchange : Exchange
        What carries the messages.
    shared_memory : bool
        Whether ranks on the same machine read the parts of `exchange_parts` where they lie; all others are
        sent them in the fewest bits. The same on all ranks.

    Attributes
    ----------
    n_exchanges : int
        How often all ranks sent something.
    bytes_sent : int
        What this rank sent to others.
    seconds : float
        The time that exchanges took, waiting included.
    """

    def __init__(self, exchange: Exchange, shared_memory: bool = True) -> None:
        self._exchange = exchange
        self._parts = Parts(exchange.rank, exchange.size, shared_memory)
        self._parts_sent = -1  # after how many exchanges
        self.n_exchanges = 0
        self.bytes_sent = 0
        self.seconds = 0.0

    @property
    def rank(self) -> int:
        return self._exchange.rank

    @property
    def size(self) -> int:
        return self._exchange.size

    def all_to_all(self, parts: Sequence[Buffer]) -> list[Received]:
        """Send ``parts[r]`` to rank ``r``; return what each rank sent here, by rank."""
        start = time.perf_counter()
        received = self._exchange.exchange(parts)
        self.seconds += time.perf_counter() - start
        self.n_exchanges += 1
        self.bytes_sent += sum(as_bytes(part).nbytes for rank, part in enumerate(parts) if rank != self.rank)
        return received

    def all_gather(self, part: Buffer) -> list[Received]:
        """Return what each rank gave, by rank."""
        return self.all_to_all([part] * self.size)

    def add(self, array: Numbers) -> None:
        """Replace an array by the sum over all ranks, in place. Sums of integers must fit their type."""
        self._reduce(array, np.add)

    def largest(self, array: npt.NDArray[np.float64]) -> None:
        """Replace each number by the largest of all ranks, in place; NaN where one of them is NaN."""
        self._reduce(array, np.maximum)

    def memory(self, n: int) -> Part:
        """Return memory for so many numbers, whose slices `exchange_parts` takes. All ranks ask together.

        It is valid until this is called again, and may be written at once.
        """
        if self._parts_sent == self.n_exchanges:  # others may still read
            self.all_gather(b"")
        return self._parts.memory(n, self.all_gather)

    def exchange_parts(self, parts: Sequence[Part], n_threads: int) -> list[Part]:
        """Send ``parts[r]``, which lies in the memory for parts, to rank ``r``, its owner.

        Every rank has a part of the same shape for an owner; owners may differ. Where parts are packed, each
        entry of the first axis (a node, say) has a width of its own.

        Returns
        -------
        list of int32 ndarray
            The parts of all other ranks for this one, to be read until this rank exchanges something else.
            It has to: the others wait for that before they write again.
        """
        if len(parts) != self.size:
            raise ValueError(f"{len(parts)} parts for {self.size} ranks")
        messages = self.all_to_all(self._parts.sent(parts, n_threads))
        self._parts_sent = self.n_exchanges
        return self._parts.received(messages, parts[self.rank], n_threads)

    def _reduce(self, array: Numbers, operation: np.ufunc) -> None:
        if array.dtype not in _SUMMED:
            raise TypeError(f"arrays of {array.dtype} are not summed over ranks; int32, int64, float64 are")
        if not array.flags.c_contiguous or not array.flags.writeable:
            raise ValueError("an array that is summed over ranks in place is contiguous and can be written")
        if self.size == 1:
            return
        flat = array.reshape(-1)
        if self.size == 2 or flat.nbytes <= _SMALL_BYTES:
            flat[:] = _combined(self.all_gather(flat), flat, operation)
            return
        # Everybody combines a slice, and tells the others.
        cuts = [len(flat) * rank // self.size for rank in range(self.size + 1)]
        slices = [flat[start:stop] for start, stop in pairwise(cuts)]
        own = _combined(self.all_to_all(slices), slices[self.rank], operation)
        for rank, received in enumerate(self.all_gather(own)):
            slices[rank][:] = _as_numbers(received, slices[rank], rank)


def _combined(received: Sequence[Received], like: npt.NDArray[Any], operation: np.ufunc) -> npt.NDArray[Any]:
    total = _as_numbers(received[0], like, 0).copy()
    for rank in range(1, len(received)):
        operation(total, _as_numbers(received[rank], like, rank), out=total)
    return total


def _as_numbers(received: Received, like: npt.NDArray[Any], rank: int) -> npt.NDArray[Any]:
    if len(received) != like.nbytes:
        raise ExchangeError(f"rank {rank} sent {len(received)} bytes where {like.nbytes} were expected")
    return np.frombuffer(received, dtype=like.dtype)
