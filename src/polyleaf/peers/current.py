"""Over whose rows sums are taken: those here, or those of all shards of a run.

Losses and metrics sum over rows in many places. Which rows these are is not their business: within
``summed_over(peers)``, the sums, extremes and quantiles of :mod:`polyleaf.data.sums` are those of all shards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from polyleaf.peers.collectives import Collectives

_PEERS: ContextVar[Collectives | None] = ContextVar("peers", default=None)


@contextmanager
def summed_over(peers: Collectives | None) -> Iterator[None]:
    """Sum over the rows of all shards in this thread; None: over those here."""
    token = _PEERS.set(peers)
    try:
        yield
    finally:
        _PEERS.reset(token)


def current_peers() -> Collectives | None:
    """Return what connects the shards that sums are taken over; None: there is one."""
    return _PEERS.get()
