"""Ranks as threads of one process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TypeVar

from polyleaf.peers.exchange import Buffer, PeerFailed, Received, checked_parts

Result = TypeVar("Result")


@dataclass(frozen=True)
class _Ended:
    """Put into a queue behind the last part: nothing more will come."""

    rank: int
    why: str


# By sender and receiver.
_Queues = list[list["SimpleQueue[Received | _Ended]"]]


class ThreadExchange:
    """One of several ranks in a process; `local_group` makes them.

    Parameters
    ----------
    rank : int
        Which one this is.
    queues : list of lists of queues
        Those of the group, by sender and receiver.
    """

    def __init__(self, rank: int, queues: _Queues) -> None:
        self._rank = rank
        self._queues = queues
        self._failure: _Ended | None = None

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def size(self) -> int:
        return len(self._queues)

    def exchange(self, parts: Sequence[Buffer]) -> list[Received]:
        """Send ``parts[r]`` to rank ``r``; return what each rank sent here, by rank."""
        views = checked_parts(parts, self.size)
        for other, (queue, view) in enumerate(zip(self._queues[self._rank], views, strict=True)):
            # A copy: the sender may overwrite its array while the receiver still reads.
            queue.put(view if other == self._rank else view.tobytes())
        return [self._received(self._queues[other][self._rank]) for other in range(self.size)]

    def abort(self, why: str) -> None:
        """Wake all other ranks with an error that names this one, now or at their next exchange."""
        # In the queues of every sender: whoever a rank is waiting for, it wakes up.
        for of_sender in self._queues:
            for queue in of_sender:
                queue.put(_Ended(self._rank, why))

    def end(self) -> None:
        """Say that this rank exchanges nothing more; who still waits for it gets an error."""
        for queue in self._queues[self._rank]:
            queue.put(_Ended(self._rank, "it ended while others wait for it"))

    def _received(self, queue: SimpleQueue[Received | _Ended]) -> Received:
        if self._failure is None:
            part = queue.get()
            if not isinstance(part, _Ended):
                return part
            self._failure = part
        raise PeerFailed(self._failure.rank, self._failure.why)


def local_group(size: int) -> list[ThreadExchange]:
    """Return the exchanges of `size` ranks of this process, each for a thread of its own."""
    if size < 1:
        raise ValueError(f"a group has at least one rank, not {size}")
    queues: _Queues = [[SimpleQueue() for _ in range(size)] for _ in range(size)]
    return [ThreadExchange(rank, queues) for rank in range(size)]


def run_local(size: int, function: Callable[[ThreadExchange], Result]) -> list[Result]:
    """Call ``function(exchange)`` for each rank of a group, each in a thread; return the results by rank.

    The first error of a rank wakes the others, and is raised here. One rank runs in the calling thread.
    """
    group = local_group(size)
    results: dict[int, Result] = {}
    errors: list[BaseException] = []  # in the order of time

    def one(exchange: ThreadExchange) -> None:
        try:
            results[exchange.rank] = function(exchange)
        except BaseException as error:
            errors.append(error)
            exchange.abort(f"{type(error).__name__}: {error}")
        else:
            exchange.end()

    threads = [
        threading.Thread(target=one, args=(exchange,), name=f"rank {exchange.rank}", daemon=True)
        for exchange in group[1:]
    ]
    for thread in threads:
        thread.start()
    one(group[0])  # Ctrl-C arrives in this thread: it ends rank 0, which wakes the others
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [results[rank] for rank in range(size)]
