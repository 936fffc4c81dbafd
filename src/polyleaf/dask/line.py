"""A line between the first rank and the client: reports go there, answers come back.

The client calls and is kept waiting until there is a report; its next call brings the answer. So there is one
call a report, over the connections that Dask has, and nothing is left on the scheduler.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence

from distributed import Client, Future, Worker

from polyleaf.dask.comms import at_client, call_line, first_of, on_loop
from polyleaf.dask.post import Post


class Line:
    """The worker's end. All calls come from its event loop.

    Parameters
    ----------
    post : Post
        The messages of the rank: when they end, so does this.
    """

    def __init__(self, post: Post) -> None:
        self._post = post
        self._reports: dict[int, bytes] = {}  # by number; gone once the client has them
        self._answers: dict[int, asyncio.Future[bytes]] = {}
        self._n_told = 0
        self._told = asyncio.Event()

    async def tell(self, report: bytes) -> int:
        """Leave a report for the client; return its number."""
        number = self._n_told
        self._reports[number] = report
        self._n_told += 1
        self._told.set()
        return number

    async def ask(self, report: bytes) -> bytes:
        """Leave a report, and wait for the answer."""
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._answers[await self.tell(report)] = answer
        while not answer.done():
            if self._post.inbox.failure is not None:
                raise self._post.inbox.failure
            await asyncio.wait({answer}, timeout=self._post.deadlines.beat)
        return answer.result()

    async def take(self, n_heard: int, answer: bytes) -> list[bytes]:
        """Return the reports that the client has not heard, once there is one; none where none will come.

        Parameters
        ----------
        n_heard : int
            Reports that it has heard.
        answer : bytes
            Its answer to the last one of these.
        """
        for number in [number for number in self._reports if number < n_heard]:
            del self._reports[number]
        asked = self._answers.pop(n_heard - 1, None)
        if asked is not None:
            asked.set_result(answer)
        deadlines, loop = self._post.deadlines, asyncio.get_running_loop()
        until = loop.time() + deadlines.silence
        while not self._reports and not self._is_over() and loop.time() < until:
            self._told.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._told.wait(), deadlines.beat)
        return [self._reports[number] for number in sorted(self._reports)]

    def wake(self) -> None:
        """Let a client that waits for a report look whether one will come."""
        self._told.set()

    def _is_over(self) -> bool:
        return self._post.over.is_set() or self._post.inbox.failure is not None


class ClientLine:
    """The line of a rank, for the thread of its task.

    Only for the first rank, and where the launch hears what it says.
    """

    def __init__(self, worker: Worker, line: Line) -> None:
        self._worker = worker
        self._line = line

    def tell(self, report: bytes) -> None:
        """Send a report to the client, and go on."""
        on_loop(self._worker, self._line.tell, report)

    def ask(self, report: bytes) -> bytes:
        """Send a report to the client; return its answer."""
        return on_loop(self._worker, self._line.ask, report)


class Listener:
    """The client's end.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster.
    address, run, epoch
        Where the first rank is, and of which launch.
    hear : callable (bytes) -> bytes
        Called for each report, in the thread that listens; returns the answer.
    """

    def __init__(
        self, client: Client, address: str, run: str, epoch: int, hear: Callable[[bytes], bytes]
    ) -> None:
        self._client = client
        self._address = address
        self._launch = run, epoch
        self._hear = hear
        self._n_heard = 0
        self._answer = b""
        self._calling: asyncio.Future[list[bytes]] | None = None
        self._rests = False

    def listen(self, pending: Sequence[Future], seconds: float) -> None:
        """Answer reports until a future is done or time is up."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not any(future.done() for future in pending):
            for report in at_client(self._client, self._next, pending, left):
                self._n_heard += 1
                self._answer = self._hear(report)

    async def _next(self, pending: Sequence[Future], seconds: float) -> list[bytes]:
        if self._calling is None and not self._rests:
            call = call_line(self._client, self._address, *self._launch, self._n_heard, self._answer)
            self._calling = asyncio.ensure_future(call)
        self._rests = False
        await first_of(pending, self._calling, seconds)
        if self._calling is None or not self._calling.done():
            return []
        done, self._calling = self._calling, None
        reports = [] if done.cancelled() or done.exception() is not None else done.result()
        self._rests = not reports  # the rank has ended or is lost: the futures tell more
        return reports

    def close(self) -> None:
        """Wait for no more reports."""
        if self._calling is not None:
            with contextlib.suppress(RuntimeError):  # there is no loop where the client was closed
                self._client.loop.add_callback(self._calling.cancel)
