"""A run as a worker sees it: opened by the client, worked on in a task, forgotten when it is over."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from distributed import Worker
from distributed.comm import get_address_host

from polyleaf.dask.comms import call, cancellation_of_own_task, desk_of, on_loop, own_worker, resources_of
from polyleaf.dask.line import ClientLine, Line
from polyleaf.dask.messages import Deadlines, Message, Reply, refused
from polyleaf.dask.post import Post
from polyleaf.dask.streams import Stream, open_stream
from polyleaf.data.memory import MemoryShare, within
from polyleaf.peers.exchange import (
    Buffer,
    Exchange,
    ExchangeError,
    Fenced,
    PeerLost,
    Received,
    checked_parts,
)


@dataclass(frozen=True)
class Rank:
    """What a function that runs on every worker gets.

    Attributes
    ----------
    exchange : Exchange
        Sends to the other ranks.
    n_threads : int
        Threads of this worker, whatever OMP_NUM_THREADS says.
    kept : dict
        What this run keeps on this worker from one launch to the next; empty in the first one.
    client : ClientLine
        What the first rank says to the client.
    epoch : int
        The number of this launch.
    """

    exchange: Exchange
    n_threads: int
    kept: dict[str, Any]
    client: ClientLine
    epoch: int


class DaskExchange:
    """The exchange of a rank, for the thread of its task.

    Parameters
    ----------
    worker : distributed.Worker
        Where the task runs.
    post : Post
        The messages of this rank.
    """

    def __init__(self, worker: Worker, post: Post) -> None:
        self._worker = worker
        self._post = post

    @property
    def rank(self) -> int:
        return self._post.rank

    @property
    def size(self) -> int:
        return self._post.size

    def exchange(self, parts: Sequence[Buffer]) -> list[Received]:
        """Send ``parts[r]`` to rank ``r``; return what each rank sent here, by rank."""
        return on_loop(self._worker, self._post.exchange, checked_parts(parts, self.size))


class Visit:
    """One run on one worker.

    Attributes
    ----------
    post : Post
        The messages of its present epoch.
    line : Line
        What the client hears of it.
    kept : dict
        What it keeps here between epochs.
    """

    def __init__(self) -> None:
        self.post: Post | None = None
        self.line: Line | None = None
        self.kept: dict[str, Any] = {}
        self.begun = False
        self._expiry: asyncio.TimerHandle | None = None

    def expire_after(self, seconds: float | None, forget: Callable[[], None]) -> None:
        """Forget this run after so many seconds; None: not at all."""
        if self._expiry is not None:
            self._expiry.cancel()
        self._expiry = None
        if seconds is not None:
            self._expiry = asyncio.get_running_loop().call_later(seconds, forget)


class Desk:
    """The runs on one worker. All calls come from its event loop."""

    def __init__(self) -> None:
        self.visits: dict[str, Visit] = {}
        self._closes = False

    def answer(self, message: Message) -> Reply:
        """Give a message to its run, or refuse it."""
        if self._closes:
            return refused("its worker closes")
        visit = self.visits.get(message["run"])
        if visit is None or visit.post is None:
            return refused(f"its worker knows nothing of run {message['run']}", late=True)
        return visit.post.answer(message)

    async def take(self, run: str, epoch: int, n_heard: int, answer: bytes) -> list[bytes]:
        """Return what the rank of a run has to say to the client; see `Line.take`."""
        visit = self.visits.get(run)
        if visit is None or visit.post is None or visit.line is None or visit.post.epoch != epoch:
            return []
        return await visit.line.take(n_heard, answer)

    async def open(
        self, worker: Worker, run: str, epoch: int, rank: int, addresses: Sequence[str], deadlines: Deadlines
    ) -> None:
        """Take messages of this epoch, and none of older ones any more."""
        before = self.visits.get(run)
        if before is not None and before.post is not None:
            old = before.post
            if old.epoch >= epoch:
                raise Fenced(f"epoch {epoch} of run {run} begins after epoch {old.epoch}")
            if before.begun and not old.over.is_set():  # its thread may still write into what is kept
                old.fail(Fenced(f"epoch {epoch} began"), tell=False)
                await asyncio.wait_for(old.over.wait(), deadlines.start)

        async def carry(address: str, message: Message) -> Reply:
            return await call(worker, address, message)

        async def connect(address: str) -> Stream:
            return await open_stream(worker, address)

        visit = self.visits.setdefault(run, Visit())  # the old one may have been forgotten meanwhile
        visit.post = Post(run, epoch, rank, addresses, deadlines, carry, connect)
        visit.line = Line(visit.post)
        visit.begun = False
        visit.expire_after(deadlines.kept, lambda: self.forget(run))

    async def begin(self, run: str, epoch: int, is_cancelled: Callable[[], bool]) -> tuple[Post, Visit]:
        """Return the messages of a rank whose task starts."""
        visit = self.visits.get(run)
        if visit is None or visit.post is None or visit.post.epoch != epoch or visit.begun:
            raise Fenced(f"epoch {epoch} of run {run} is over, or this worker began anew")
        visit.begun = True
        visit.expire_after(None, lambda: None)
        visit.post.begin(is_cancelled)
        return visit.post, visit

    async def end(self, post: Post, line: Line, error: BaseException | None) -> None:
        """Close the messages of a rank whose task ends."""
        await post.end(error)
        line.wake()
        visit = self.visits.get(post.run)
        if visit is None or visit.post is not post:
            return
        if isinstance(error, Fenced):  # the others went on without it
            self.forget(post.run)
        else:
            visit.expire_after(post.deadlines.kept, lambda: self.forget(post.run))

    def abort(self, run: str, epoch: int, error: ExchangeError) -> None:
        """Wake the rank of a run here with an error."""
        visit = self.visits.get(run)
        if visit is not None and visit.post is not None and visit.post.epoch == epoch:
            visit.post.fail(error, tell=False)

    def forget(self, run: str) -> None:
        """Drop all that a run has here; a task of it that still runs gets an error."""
        visit = self.visits.pop(run, None)
        if visit is not None:
            visit.expire_after(None, lambda: None)
            if visit.post is not None:
                visit.post.fail(Fenced("the run is over"), tell=False)

    async def close(self) -> None:
        """The worker closes: tell all others."""
        self._closes = True
        for run, visit in list(self.visits.items()):
            post = visit.post
            if post is not None and visit.begun:
                post.fail(PeerLost(post.rank, post.addresses[post.rank], "its worker closes"))
                await post.end(None)
            self.forget(run)


async def open_run(
    run: str, epoch: int, rank: int, addresses: Sequence[str], deadlines: Deadlines, dask_worker: Worker
) -> str:
    """Prepare a worker for an epoch; return its version of polyleaf. Runs in its event loop."""
    desk: Desk = await desk_of(dask_worker, Desk)
    await desk.open(dask_worker, run, epoch, rank, addresses, deadlines)
    return version("polyleaf")


async def abort_run(run: str, epoch: int, error: ExchangeError, dask_worker: Worker) -> None:
    """Wake the rank of a run on a worker with an error. Runs in its event loop."""
    desk: Desk = await desk_of(dask_worker, Desk)
    desk.abort(run, epoch, error)


async def own_version(dask_worker: Worker) -> str:
    """Return the version of polyleaf that a worker has, and has loaded from now on."""
    await desk_of(dask_worker, Desk)
    return version("polyleaf")


async def ask_run(
    run: str, question: Callable[[dict[str, Any]], Any], deadlines: Deadlines, dask_worker: Worker
) -> Any:
    """Return what a function says of what a run keeps on a worker, which will be needed a while longer.

    None where it keeps nothing. Runs in its event loop.
    """
    desk: Desk = await desk_of(dask_worker, Desk)
    visit = desk.visits.get(run)
    if visit is None:
        return None
    if not visit.begun or visit.post is None or visit.post.over.is_set():  # nobody works on it
        visit.expire_after(deadlines.kept, lambda: desk.forget(run))
    return question(visit.kept)


async def has_begun(run: str, epoch: int, dask_worker: Worker) -> bool:
    """Whether the task of a rank has started. Runs in the event loop of its worker."""
    desk: Desk = await desk_of(dask_worker, Desk)
    visit = desk.visits.get(run)
    return visit is not None and visit.begun and visit.post is not None and visit.post.epoch == epoch


async def forget_run(run: str, dask_worker: Worker) -> None:
    """Drop all that a run has on a worker. Runs in its event loop."""
    desk: Desk = await desk_of(dask_worker, Desk)
    desk.forget(run)


def run_rank(pickled: bytes, run: str, epoch: int, shard: Any) -> Any:
    """Call ``function(rank, shard)``: the task of one rank. Only rank 0 returns what comes of it."""
    worker = own_worker()
    desk: Desk = on_loop(worker, desk_of, worker, Desk)
    post, visit = on_loop(worker, desk.begin, run, epoch, cancellation_of_own_task(worker))
    assert visit.line is not None
    line = visit.line
    exchange = DaskExchange(worker, post)
    n_threads, limit = resources_of(worker)
    host = get_address_host(post.addresses[post.rank])
    n_neighbours = sum(get_address_host(address) == host for address in post.addresses)
    rank = Rank(exchange, n_threads, visit.kept, ClientLine(worker, line), epoch)
    try:
        function: Callable[[Rank, Any], Any] = pickle.loads(pickled)
        with within(MemoryShare(n_neighbours, limit)):
            result = function(rank, shard)
    except BaseException as error:
        on_loop(worker, desk.end, post, line, error)
        raise
    on_loop(worker, desk.end, post, line, None)
    return result if post.rank == 0 else None
