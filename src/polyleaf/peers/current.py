"""Over whose rows sums are taken: those here, or those of all shards of a run.

Losses and metrics sum over rows in many places. Which rows these are is not their business: within
``summed_over(peers)``, the sums, extremes and quantiles of :mod:`polyleaf.data.sums` are those of all shards.
"""

from __future__ import annotations

from contextvars import ContextVar

from polyleaf.peers.collectives import Collectives

_PEERS: ContextVar[Collectives | None] = ContextVar("peers", default=None)


class SummedOver:
    """What `summed_over` returns; a class, since rounds of small tables notice how long a generator takes."""

    __slots__ = ("_peers", "_token")

    def __init__(self, peers: Collectives | None) -> None:
        self._peers = peers

    def __enter__(self) -> None:
        self._token = _PEERS.set(self._peers)

    def __exit__(self, *error: object) -> None:
        _PEERS.reset(self._token)


def summed_over(peers: Collectives | None) -> SummedOver:
    """Sum over the rows of all shards in this thread, within a ``with``; None: over those here."""
    return SummedOver(peers)


def current_peers() -> Collectives | None:
    """Return what connects the shards that sums are taken over; None: there is one."""
    return _PEERS.get()
