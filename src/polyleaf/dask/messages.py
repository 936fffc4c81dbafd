"""What workers say to each other in a run: messages, replies, failures in plain values, deadlines."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, TypedDict

from polyleaf.peers.exchange import ExchangeError, Fenced, PeerFailed, PeerLost, Received


@dataclass(frozen=True)
class Deadlines:
    """How long ranks wait for each other, in seconds.

    A rank that computes is not silent: its worker answers meanwhile.

    Parameters
    ----------
    beat : float
        How often a worker asks the next one whether it lives.
    silence : float
        A worker that answers nothing for so long is lost. Time in which the asking process itself was stopped
        does not count.
    start : float
        A worker must be ready within it when a run begins.
    kept : float
        What a run keeps on a worker between two launches goes when the next one does not come within it.
    """

    beat: float = 1.0
    silence: float = 20.0
    start: float = 60.0
    kept: float = 600.0

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if not value > 0:
                raise ValueError(f"the deadline {one.name} is {value!r}; it must be above 0 seconds")
        if self.silence < 2 * self.beat:
            raise ValueError(f"silence ({self.silence} s) is less than two beats of {self.beat} s")


Kind = Literal["part", "alive", "failed", "ended"]


class Failure(TypedDict):
    """Why an epoch failed. `address` is empty where a rank raised an error, and did not get lost."""

    rank: int
    address: str
    why: str


class Message(TypedDict, total=False):
    """What one worker sends another. Run, epoch and sender are in all of them."""

    run: str
    epoch: int
    sender: int
    kind: Kind
    sequence: int  # of a part; of "ended": how many exchanges there were
    data: Received  # of a part
    failure: Failure  # of "failed"
    recent: list[Message]  # of "ended": the last parts, which may have been lost on their way


class Reply(TypedDict, total=False):
    """OK, or refused: with the failure of the epoch where there is one."""

    status: Literal["OK", "refused"]
    why: str
    late: bool  # the epoch of the sender is over, as far as is known there
    failure: Failure


def refused(why: str, late: bool = False) -> Reply:
    """Return the reply to a message that is not taken."""
    return {"status": "refused", "why": why, "late": late}


def failure_of(error: ExchangeError, own_rank: int) -> Failure:
    """Return an error in plain values."""
    if isinstance(error, PeerLost):
        return {"rank": error.rank, "address": error.address, "why": error.why}
    if isinstance(error, PeerFailed):
        return {"rank": error.rank, "address": "", "why": error.why}
    return {"rank": own_rank, "address": "", "why": str(error)}


def error_of(failure: Failure, own_rank: int) -> ExchangeError:
    """Return the error of these values, as the rank `own_rank` sees it."""
    if failure["address"] and failure["rank"] == own_rank:
        return Fenced(f"the others go on without rank {own_rank}: {failure['why']}")
    if failure["address"]:
        return PeerLost(**failure)
    return PeerFailed(failure["rank"], failure["why"])


def read_reply(reply: Any) -> Reply:
    """Return a reply; a worker without handlers of ours says nothing."""
    if isinstance(reply, dict) and "status" in reply:
        return reply  # type: ignore[return-value]
    return refused("its worker knows nothing of any run", late=True)
