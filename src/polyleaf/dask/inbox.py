"""What has arrived for one rank in one epoch, and who waits for it."""

from __future__ import annotations

import asyncio

from polyleaf.peers.exchange import ExchangeError, PeerFailed, Received


class Inbox:
    """Parts by sequence number and sender. All calls come from one event loop.

    Parameters
    ----------
    rank, size : int
        Whose it is, and how many ranks there are.

    Attributes
    ----------
    failure : ExchangeError or None
        Why nothing more comes.
    ended : dict
        Ranks that have done all their exchanges, and how many those were.
    """

    def __init__(self, rank: int, size: int) -> None:
        self._rank = rank
        self._n_others = size - 1
        self._parts: dict[int, dict[int, Received]] = {}
        self._waiting: tuple[int, asyncio.Future[None]] | None = None
        self._next = 0
        self.failure: ExchangeError | None = None
        self.ended: dict[int, int] = {}

    def __len__(self) -> int:
        """How many parts lie here."""
        return sum(map(len, self._parts.values()))

    def deliver(self, sequence: int, sender: int, part: Received) -> None:
        """Take a part in. One that comes again, or was read already, is left."""
        if sequence < self._next or self.failure is not None:
            return
        self._parts.setdefault(sequence, {}).setdefault(sender, part)
        self._wake()

    def end(self, sender: int, n_exchanges: int) -> None:
        """Note that a rank sends nothing more."""
        self.ended[sender] = n_exchanges
        self._wake()

    def fail(self, failure: ExchangeError) -> None:
        """Wake who waits, and everybody who comes later, with this error; the first one stays."""
        if self.failure is None:
            self.failure = failure
            self.clear()
            self._wake()

    def clear(self) -> None:
        """Drop what lies here."""
        self._parts.clear()

    async def collect(self, sequence: int) -> dict[int, Received]:
        """Wait for the parts of all other ranks; return them by rank."""
        arrived: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting = sequence, arrived
        self._wake()
        try:
            await arrived
        finally:
            self._waiting = None
        if self.failure is not None:  # since it was woken
            raise self.failure
        self._next = sequence + 1
        return self._parts.pop(sequence, {})

    def _wake(self) -> None:
        if self._waiting is None or self._waiting[1].done():
            return
        sequence, arrived = self._waiting
        here = self._parts.get(sequence, {})
        early = [rank for rank, n in self.ended.items() if n <= sequence and rank not in here]
        if self.failure is not None:
            arrived.set_exception(self.failure)
        elif len(here) == self._n_others:
            arrived.set_result(None)
        elif early:
            arrived.set_exception(
                PeerFailed(early[0], f"it ended while rank {self._rank} waits for exchange {sequence}")
            )
