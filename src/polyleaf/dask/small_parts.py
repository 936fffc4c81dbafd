"""Small parts from one rank to another, by a stream: nobody waits for answers. By calls where it breaks."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol

from polyleaf.dask.messages import Message, Reply
from polyleaf.peers.exchange import ExchangeError


class OneWay(Protocol):
    """What carries messages in order; see `polyleaf.dask.streams`."""

    async def send(self, message: Message) -> None: ...
    async def refusal(self) -> Reply: ...
    async def close(self) -> None: ...
    def abort(self) -> None: ...


class SmallParts:
    """The small parts of one rank for another. All calls come from one event loop.

    Who takes part in an exchange has had all parts of the last but one: the parts of two exchanges are kept,
    to be sent again where a stream breaks. A part that comes twice does no harm.

    Parameters
    ----------
    connect : callable () -> awaitable stream
        Opens a stream to the other rank; raises OSError where that fails.
    describe : callable (sequence, bytes) -> Message
        The message of a part.
    call : callable (Message) -> awaitable
        Sends a message and waits for the answer; raises `ExchangeError` where it is refused or does not come.
    heed : callable (Reply)
        Raises `ExchangeError` for what a refusal means.
    fail : callable (ExchangeError)
        Is told of errors.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[OneWay]],
        describe: Callable[[int, bytes], Message],
        call: Callable[[Message], Awaitable[None]],
        heed: Callable[[Reply], None],
        fail: Callable[[ExchangeError], None],
    ) -> None:
        self._connect = connect
        self._describe = describe
        self._call = call
        self._heed = heed
        self._fail = fail
        self._recent: deque[Message] = deque(maxlen=2)
        self._waiting: deque[Message] = deque()
        self._stream: OneWay | None = None
        self._streams = True  # as long as none has broken
        self._tasks: set[asyncio.Task[None]] = set()
        self._sender: asyncio.Task[None] | None = None

    def send(self, sequence: int, part: bytes) -> None:
        """Send a part, in the order of calls, while the caller goes on."""
        message = self._describe(sequence, part)
        self._recent.append(message)
        self._waiting.append(message)
        if self._sender is None:
            self._sender = self._started(self._send_waiting())

    def recent(self) -> list[Message]:
        """Return the messages that the other rank may not have had yet."""
        return list(self._recent)

    async def end(self, seconds: float) -> None:
        """Wait, at most so long, until all is on its way; then let go of the connection."""
        if self._sender is not None:
            await asyncio.wait({self._sender}, timeout=seconds)
        self._cancel_tasks()
        if self._stream is not None:
            await self._stream.close()

    def stop(self) -> None:
        """Send nothing more."""
        self._waiting.clear()
        self._cancel_tasks()
        if self._stream is not None:
            self._stream.abort()

    def _cancel_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _started(self, work: Awaitable[None]) -> asyncio.Task[None]:
        async def guarded() -> None:
            try:
                await work
            except ExchangeError as error:
                self._fail(error)
            except Exception as error:  # else all would wait for what is not sent
                self._fail(ExchangeError(f"{type(error).__name__}: {error}"))

        task = asyncio.create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _send_waiting(self) -> None:
        try:
            while self._waiting:
                await self._send_one(self._waiting.popleft())
        finally:
            self._sender = None

    async def _send_one(self, message: Message) -> None:
        if self._streams:
            try:
                if self._stream is None:
                    self._stream = await self._connect()
                    self._started(self._listen(self._stream))
                await self._stream.send(message)
                return
            except OSError:
                await self._broken()
        else:
            await self._call(message)

    async def _listen(self, stream: OneWay) -> None:
        """Hear of refusals, and of the end of the connection."""
        try:
            self._heed(await stream.refusal())
        except OSError:
            await self._broken()

    async def _broken(self) -> None:
        """Go on without a stream: what it may not have carried is sent again."""
        if not self._streams:
            return
        self._streams = False
        for message in list(self._recent):
            await self._call(message)
