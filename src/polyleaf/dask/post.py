"""One rank in one epoch of a run: sends, answers, watches the next rank, tells all others of a failure.

Nothing here knows of Dask; `call` carries a message to an address and brings the reply.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from polyleaf.dask.inbox import Inbox
from polyleaf.dask.messages import (
    Deadlines,
    Failure,
    Kind,
    Message,
    Reply,
    error_of,
    failure_of,
    refused,
)
from polyleaf.dask.small_parts import OneWay, SmallParts
from polyleaf.peers.exchange import ExchangeError, Fenced, PeerFailed, PeerLost, Received, Stopped

# A part may take this much longer than a plain answer: bytes per second of a slow network.
_SLOWEST = 10e6
_LONGEST_REASON = 2000
# Up to here a part is copied, and nobody waits for the word that it has arrived.
_COPIED_BYTES = 1 << 16

Call = Callable[[str, Message], Awaitable[Reply]]
Connect = Callable[[str], Awaitable[OneWay]]


class Post:
    """The messages of one rank in one epoch. All calls come from the event loop of its worker.

    Parameters
    ----------
    run : str
        Which run.
    epoch : int
        Which of its launches, from 1.
    rank : int
        Which rank this is.
    addresses : sequence of str
        Where the ranks are.
    deadlines : Deadlines
        How long to wait.
    call : callable (address, message) -> awaitable reply
        Carries a message. Raises OSError where that fails, ConnectionRefusedError where nobody listens.
    connect : callable (address) -> awaitable stream
        Opens a way for small parts. Raises OSError where that fails.

    Attributes
    ----------
    over : asyncio.Event
        This rank has ended, one way or another.
    """

    def __init__(
        self,
        run: str,
        epoch: int,
        rank: int,
        addresses: Sequence[str],
        deadlines: Deadlines,
        call: Call,
        connect: Connect,
    ) -> None:
        self.run = run
        self.epoch = epoch
        self.rank = rank
        self.addresses = tuple(addresses)
        self.deadlines = deadlines
        self.inbox = Inbox(rank, len(addresses))
        self.over = asyncio.Event()
        self._call = call
        self._n_exchanges = 0
        self._watching: list[asyncio.Task[None]] = []
        self._notices: set[asyncio.Task[None]] = set()
        self._streams = {other: self._stream_to(other, connect) for other in self._others()}

    @property
    def size(self) -> int:
        return len(self.addresses)

    def begin(self, is_cancelled: Callable[[], bool]) -> None:
        """Start to watch the next rank, and whether the own task is still wanted."""
        self._watching = [
            asyncio.create_task(self._watch_next()),
            asyncio.create_task(self._watch_own_task(is_cancelled)),
        ]

    async def exchange(self, parts: Sequence[memoryview]) -> list[Received]:
        """Send ``parts[r]`` to rank ``r``; return what each rank sent here."""
        if self.over.is_set():
            raise Fenced(f"epoch {self.epoch} of run {self.run} is over")
        if self.inbox.failure is not None:
            raise self.inbox.failure
        sequence = self._n_exchanges
        self._n_exchanges += 1
        sending: list[asyncio.Task[Any]] = []
        for other in self._others():  # everybody begins with another receiver
            part = parts[other]
            if len(part) > _COPIED_BYTES:
                sending.append(asyncio.create_task(self._send_part(other, sequence, part)))
            else:
                self._streams[other].send(sequence, bytes(part))
        try:
            if sending:
                collecting = asyncio.create_task(self.inbox.collect(sequence))
                sending.append(collecting)
                await asyncio.gather(*sending)
                received = collecting.result()
            else:
                received = await self.inbox.collect(sequence)
        except ExchangeError as error:
            self.fail(error)
            assert self.inbox.failure is not None
            raise self.inbox.failure from None
        finally:
            for task in sending:
                task.cancel()
        return [parts[self.rank] if one == self.rank else received[one] for one in range(self.size)]

    def answer(self, message: Message) -> Reply:
        """Take a message of another rank in, or refuse it."""
        if message["epoch"] != self.epoch:
            late = message["epoch"] < self.epoch
            return refused(f"this is epoch {self.epoch}, not {message['epoch']}", late)
        if message["kind"] == "failed":
            self.fail(error_of(message["failure"], self.rank), tell=False)
            return {"status": "OK"}
        if self.inbox.failure is not None:
            failure = failure_of(self.inbox.failure, self.rank)
            return {"status": "refused", "why": failure["why"], "failure": failure}
        if message["kind"] == "ended":
            for part in message.get("recent", []):
                self.inbox.deliver(part["sequence"], part["sender"], part["data"])
            self.inbox.end(message["sender"], message["sequence"])
        elif message["kind"] == "part" and not self.over.is_set():
            self.inbox.deliver(message["sequence"], message["sender"], message["data"])
        elif message["kind"] == "part" and message["sequence"] >= self._n_exchanges:
            return refused(f"rank {self.rank} has ended")
        return {"status": "OK"}  # also to a part that comes again after the end

    def fail(self, error: ExchangeError, tell: bool = True) -> None:
        """Wake this rank with an error, and tell all others; the first error stays."""
        if self.inbox.failure is not None or self.over.is_set():
            return
        self.inbox.fail(error)
        if tell:
            failure = failure_of(error, self.rank)
            lost = error.rank if isinstance(error, PeerLost) else None
            self._tell([other for other in self._others() if other != lost], "failed", failure=failure)

    async def end(self, error: BaseException | None) -> None:
        """Say good-bye, with the error of this rank where it has one. Nothing stays behind here."""
        if error is not None:
            self.fail(PeerFailed(self.rank, f"{type(error).__name__}: {error}"[:_LONGEST_REASON]))
        elif self.inbox.failure is None:
            self._tell(self._others(), "ended", sequence=self._n_exchanges)
        for watching in self._watching:
            watching.cancel()
        for stream in self._streams.values():
            if self.inbox.failure is None:
                await stream.end(self.deadlines.silence)
            else:
                stream.stop()
        if self._notices:  # those to a rank that is silent go on for a while
            await asyncio.wait(self._notices, timeout=self.deadlines.beat)
        self.over.set()
        self.inbox.clear()

    def _others(self) -> list[int]:
        return [(self.rank + step) % self.size for step in range(1, self.size)]

    def _message(self, kind: Kind) -> Message:
        return {"run": self.run, "epoch": self.epoch, "sender": self.rank, "kind": kind}

    def _part(self, sequence: int, part: Received) -> Message:
        message = self._message("part")
        message["sequence"] = sequence
        message["data"] = part
        return message

    async def _send_part(self, other: int, sequence: int, part: Received) -> None:
        self._heed(other, await self._reach(other, self._part(sequence, part)))

    def _stream_to(self, other: int, connect: Connect) -> SmallParts:
        async def call(message: Message) -> None:
            self._heed(other, await self._reach(other, message))

        return SmallParts(
            lambda: connect(self.addresses[other]),
            self._part,
            call,
            lambda reply: self._heed(other, reply),
            self.fail,
        )

    def _heed(self, other: int, reply: Reply) -> None:
        """Raise what a refusal means."""
        if reply["status"] == "OK":
            return
        if "failure" in reply:
            raise error_of(reply["failure"], self.rank)
        if reply.get("late"):
            raise Fenced(f"rank {self.rank} is late for rank {other}: {reply['why']}")
        raise PeerLost(other, self.addresses[other], reply["why"])

    async def _reach(self, other: int, message: Message) -> Reply:
        """Send a message, again where the connection breaks; raise `PeerLost` when the deadline has passed.

        Time is counted in beats of this process: one that was stopped does not take the others for dead when
        it wakes up.
        """
        address, beat = self.addresses[other], self.deadlines.beat
        seconds = self.deadlines.silence + len(message.get("data", b"")) / _SLOWEST
        left = math.ceil(seconds / beat)
        while True:
            calling = asyncio.ensure_future(self._call(address, message))
            try:
                while left > 0:
                    await asyncio.wait({calling}, timeout=beat)
                    if calling.done():
                        return calling.result()
                    left -= 1
                raise PeerLost(other, address, f"no answer for {seconds:.3g} seconds")
            except ConnectionRefusedError as error:
                raise PeerLost(other, address, f"nobody listens there any more ({error})") from error
            except OSError:
                left -= 1
                await asyncio.sleep(beat / 4)
            finally:
                calling.cancel()

    def _tell(
        self, others: Sequence[int], kind: Kind, failure: Failure | None = None, sequence: int = 0
    ) -> None:
        async def one(other: int) -> None:
            message = self._message(kind)
            message["sequence"] = sequence
            if failure is not None:
                message["failure"] = failure
            if kind == "ended":
                message["recent"] = self._streams[other].recent()
            with contextlib.suppress(ExchangeError):
                await self._reach(other, message)

        for other in others:
            notice = asyncio.create_task(one(other))
            self._notices.add(notice)
            notice.add_done_callback(self._notices.discard)

    async def _watch_next(self) -> None:
        """Ask the next rank that has not ended whether it lives. Each is watched by one."""
        while True:
            await asyncio.sleep(self.deadlines.beat)
            alive = [other for other in self._others() if other not in self.inbox.ended]
            if not alive:
                return
            try:
                reply = await self._reach(alive[0], self._message("alive"))
                if alive[0] not in self.inbox.ended:
                    self._heed(alive[0], reply)
            except ExchangeError as error:
                self.fail(error)
                return

    async def _watch_own_task(self, is_cancelled: Callable[[], bool]) -> None:
        while not is_cancelled():
            await asyncio.sleep(self.deadlines.beat)
        error: ExchangeError = Stopped(f"the task of rank {self.rank} was cancelled")
        if self.size > 1:  # one that was silent for long may be given up by the others
            other = self._others()[0]
            try:
                self._heed(other, await self._reach(other, self._message("alive")))
            except Fenced as fenced:
                error = fenced
            except ExchangeError:
                pass
        self.fail(error)
