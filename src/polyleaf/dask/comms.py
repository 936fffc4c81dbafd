"""All that we use of Dask beyond its documented interface; what streams of messages need is in `streams`.

Messages go between workers through handlers that a plugin adds to a worker, over Dask's own connections, as
those of its P2P shuffle do: no port of our own, and TLS where the cluster has it. The client reaches workers
through the scheduler.

Tested with dask and distributed 2026.8.0, and with 2025.7.0: of a worker, ``handlers``, ``plugin_add``,
``plugins``, ``rpc.connect`` and ``reuse``, ``loop.asyncio_loop``, ``state.tasks`` and ``nthreads``,
``memory_manager``; of a client, ``_run``, ``loop``, what its methods return in that loop, and
``scheduler.broadcast`` and ``identity``;
of a scheduler, in functions that run there, ``remove_worker``, ``tasks`` with ``exception_blame`` and
``erred_on``; ``distributed.core.send_recv``, ``distributed.client._wait`` and
``distributed.protocol.to_serialize``.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from distributed import Client, Future, Worker, get_worker, secede
from distributed.client import _wait
from distributed.core import send_recv
from distributed.diagnostics.plugin import WorkerPlugin
from distributed.protocol import to_serialize

from polyleaf.dask import streams
from polyleaf.dask.messages import Message, Reply, read_reply
from polyleaf.peers.exchange import Received

Result = TypeVar("Result")
_Running = tuple[concurrent.futures.Future[Result], asyncio.AbstractEventLoop]

_PLUGIN = "polyleaf-messages"
_OPERATION = "polyleaf_message"
_LINE = "polyleaf_line"
# After so many seconds somebody who waits for a client looks whether it is still there.
_LOOK_SECONDS = 1.0
# Below this a part travels inside of the message; above, beside it and without a copy.
_INSIDE_BYTES = 4096


class MessagePlugin(WorkerPlugin):  # type: ignore[misc]
    """Gives messages of other workers to `answer`. It stays on a worker, so that late ones are refused.

    Parameters
    ----------
    desk : object
        Has ``answer(message) -> Reply``, ``take(run, epoch, n_heard, answer) -> reports`` and ``close()``.
    """

    def __init__(self, desk: Any) -> None:
        self.desk = desk

    def setup(self, worker: Worker) -> None:
        """Take messages from now on."""
        worker.handlers[_OPERATION] = self._receive
        worker.handlers[streams.OPERATION] = self._take_part
        worker.handlers[_LINE] = self._take

    async def teardown(self, worker: Worker) -> None:
        """The worker closes: say so to others while there are connections. Who still asks gets an answer."""
        await self.desk.close()

    async def _receive(self, message: dict[str, Any], data: Any = None) -> Reply:
        if data is not None:
            message["data"] = data.data if isinstance(data, np.ndarray) else data
        return self.desk.answer(message)  # type: ignore[no-any-return]

    async def _take_part(self, comm: Any, message: Message) -> None:
        await streams.take(comm, message, self.desk)

    async def _take(self, run: str, epoch: int, n_heard: int, answer: bytes) -> dict[str, Any]:
        return {"status": "OK", "reports": await self.desk.take(run, epoch, n_heard, answer)}


async def desk_of(worker: Worker, make: Callable[[], Any]) -> Any:
    """Return what answers the messages that come to a worker, and make it where there is none."""
    if _PLUGIN not in worker.plugins:
        # Nothing else runs between the question and the entry: plugin_add makes it before it waits.
        await worker.plugin_add(MessagePlugin(make()), name=_PLUGIN, catch_errors=False)
    return worker.plugins[_PLUGIN].desk


async def call(worker: Worker, address: str, message: Message) -> Reply:
    """Send a message from one worker to another; return the reply.

    Raises
    ------
    ConnectionRefusedError
        Nobody listens at the address.
    OSError
        The message did not get there, or the reply did not come back.
    """
    head: dict[str, Any] = dict(message)
    part: Received | None = head.pop("data", None)
    try:
        comm = await worker.rpc.connect(address, timeout=streams.CONNECT_SECONDS)
    except OSError as error:
        if _is_refusal(error):
            raise ConnectionRefusedError("connection refused") from error
        raise
    try:
        return read_reply(await send_recv(comm, op=_OPERATION, message=head, data=_payload(part, address)))
    finally:
        worker.rpc.reuse(address, comm)


def _payload(part: Received | None, address: str) -> Any:
    if part is None:
        return None
    if len(part) < _INSIDE_BYTES or address.startswith("inproc:"):  # there, receivers get the very object
        return bytes(part)
    return to_serialize(np.frombuffer(part, dtype=np.uint8))


def _is_refusal(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ConnectionRefusedError):
            return True
        error = error.__cause__ or error.__context__
    return False


def own_worker() -> Worker:
    """Return the worker that runs this task.

    The task's slot is given back, so that two runs at once do not wait for each other.
    """
    worker = get_worker()
    secede()
    return worker


def resources_of(worker: Worker) -> tuple[int, int | None]:
    """Return the threads of a worker, and the bytes of memory that it may have before Dask pauses it.

    None where it may have whatever there is.
    """
    memory = worker.memory_manager
    limit = memory.memory_limit
    if not limit:
        return worker.state.nthreads, None
    pauses_at = memory.memory_pause_fraction  # False: never
    return worker.state.nthreads, int(limit * (pauses_at or 1.0))


def on_loop(worker: Worker, function: Callable[..., Awaitable[Result]], *arguments: Any) -> Result:
    """Call a coroutine function in the event loop of a worker, and wait, in a task's thread."""
    loop: asyncio.AbstractEventLoop = worker.loop.asyncio_loop

    async def called() -> Result:
        return await function(*arguments)

    return asyncio.run_coroutine_threadsafe(called(), loop).result()


def cancellation_of_own_task(worker: Worker) -> Callable[[], bool]:
    """Return a function that says, in the event loop, whether the task of this thread was cancelled."""
    key = worker.get_current_task()

    def is_cancelled() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled"

    return is_cancelled


async def _called(function: Callable[..., Awaitable[Result]], *arguments: Any) -> Result:
    return await function(*arguments)


def _begun(client: Client, calling: Coroutine[Any, Any, Result]) -> _Running[Result]:
    """Run a coroutine in the event loop of a client; return what will come of it, and the loop."""
    try:
        loop: asyncio.AbstractEventLoop = client.loop.asyncio_loop
        return asyncio.run_coroutine_threadsafe(calling, loop), loop
    except RuntimeError as error:  # the loop has ended
        calling.close()
        raise OSError("the client was closed") from error


def at_client(client: Client, function: Callable[..., Awaitable[Result]], *arguments: Any) -> Result:
    """Call a coroutine function in the event loop of a client, and wait, in another thread.

    There, methods of clients and futures return what is to be awaited, and may be given here, too: outside,
    they wait for ever for a client that is closed meanwhile.

    Raises
    ------
    OSError
        The client was closed.
    """
    calling = _called(function, *arguments)
    running, loop = _begun(client, calling)
    try:
        while not concurrent.futures.wait([running], _LOOK_SECONDS).done and loop.is_running():
            pass
    except BaseException:
        running.cancel()
        raise
    if not running.done():
        calling.close()
        raise OSError("the client was closed")
    try:
        return running.result()
    except concurrent.futures.CancelledError as error:
        if client.status == "running":
            raise
        raise OSError("the client was closed") from error


def run_on_workers(
    client: Client, function: Callable[..., Any], arguments: Mapping[str, tuple[Any, ...]], seconds: float
) -> dict[str, Any]:
    """Call a function in the event loops of workers, at most so long; return results or errors by address.

    A worker that does not answer has a `TimeoutError`.
    """

    async def all_of_them() -> dict[str, Any]:
        running = {
            address: asyncio.ensure_future(client._run(function, *given, workers=[address]))
            for address, given in arguments.items()
        }
        if running:
            await asyncio.wait(running.values(), timeout=seconds)
        return {address: _outcome(one, address, seconds) for address, one in running.items()}

    return at_client(client, all_of_them)


def ask_worker(client: Client, function: Callable[..., Any], address: str) -> concurrent.futures.Future[Any]:
    """Have a worker call a function in its event loop; return what will come of it, without waiting."""

    async def one() -> Any:
        return (await client._run(function, workers=[address]))[address]

    return _begun(client, one())[0]


def _outcome(running: asyncio.Future[dict[str, Any]], address: str, seconds: float) -> Any:
    if not running.done():
        running.cancel()
        return TimeoutError(f"no answer for {seconds:.3g} seconds")
    error = running.exception()
    return error if error is not None else running.result()[address]


async def call_line(
    client: Client, address: str, run: str, epoch: int, n_heard: int, answer: bytes
) -> list[bytes]:
    """Answer the line of a rank, and wait for the next reports. Runs in the client's event loop."""
    message = {"op": _LINE, "run": run, "epoch": epoch, "n_heard": n_heard, "answer": answer}
    replies = await client.scheduler.broadcast(msg=message, workers=[address], on_error="return_pickle")
    reply = replies.get(address)
    if not isinstance(reply, dict) or "reports" not in reply:
        raise OSError(f"no report of {address}")
    return list(reply["reports"])


def await_all(client: Client, futures: Sequence[Future], seconds: float) -> None:
    """Wait until all of some futures are done; raise TimeoutError where they take longer."""
    at_client(client, partial(_wait, futures, timeout=seconds, return_when="ALL_COMPLETED"))


async def first_of(pending: Sequence[Future], other: asyncio.Future[Any] | None, seconds: float) -> None:
    """Wait until one of some futures of a client, or another one, is done. Runs in its event loop."""
    waiting = asyncio.ensure_future(_wait(pending, timeout=None, return_when="FIRST_COMPLETED"))
    try:
        both = {waiting} if other is None else {waiting, other}
        await asyncio.wait(both, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


@dataclass(frozen=True)
class WorkerState:
    """A worker as the scheduler sees it.

    Attributes
    ----------
    last_seen : float
        When the scheduler heard of it, by its own clock.
    status : str
        "running", or "paused" for want of memory: it goes on with what it does, and begins nothing new.
        Others mean that it leaves.
    n_threads : int
        Of its tasks.
    """

    last_seen: float
    status: str
    n_threads: int


def is_connected(client: Client) -> bool:
    """Return whether the scheduler of a client answers.

    A client takes a while to notice that it does not.
    """
    if client.status != "running":
        return False
    try:
        with _connected(client):
            at_client(client, client.scheduler.identity)
    except (OSError, RuntimeError):
        return False
    return True


@contextmanager
def _connected(client: Client) -> Iterator[None]:
    """Raise OSError where a client has given up its scheduler: it has none from then on."""
    try:
        yield
    except AttributeError as error:
        if client.scheduler is not None:
            raise
        raise OSError("the client has given up its scheduler") from error


def threads_of_workers(client: Client) -> dict[str, int]:
    """Return the threads of the workers of the cluster, by address. Raises OSError where it is gone."""
    with _connected(client):
        return dict(at_client(client, client.nthreads))


def worker_states(client: Client) -> dict[str, WorkerState]:
    """Return the workers of the cluster by address. Raises OSError where it is gone."""
    with _connected(client):
        workers = at_client(client, client.scheduler.identity)["workers"]
    return {
        address: WorkerState(worker["last_seen"], worker["status"], worker["nthreads"])
        for address, worker in workers.items()
    }


def failed_at(client: Client, key: Any) -> list[str]:
    """Return the workers on which a task failed, or the task that it needs."""
    found: list[str] = at_client(client, client.run_on_scheduler, _failed_at, key)
    return found


def _failed_at(key: Any, dask_scheduler: Any) -> list[str]:
    task = dask_scheduler.tasks.get(key)
    return [] if task is None else sorted((task.exception_blame or task).erred_on)


def drop_workers(client: Client, addresses: Collection[str]) -> None:
    """Have the scheduler take workers for dead that are silent: what they held is computed elsewhere."""
    there = threads_of_workers(client)
    known = [address for address in addresses if address in there]
    if known:
        at_client(client, client.run_on_scheduler, _drop_workers, known)


async def _drop_workers(addresses: list[str], dask_scheduler: Any) -> None:
    for address in addresses:
        await dask_scheduler.remove_worker(address, stimulus_id="polyleaf-drops-silent-worker")
