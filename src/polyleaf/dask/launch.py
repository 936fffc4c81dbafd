"""A run as the client sees it: the same function on every worker that holds data, as one."""

from __future__ import annotations

import contextlib
import logging
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from types import TracebackType
from typing import Any, Self

import cloudpickle
from distributed import CancelledError, Client, Future

from polyleaf.dask.comms import (
    WorkerState,
    at_client,
    first_of,
    run_on_workers,
    threads_of_workers,
    worker_states,
)
from polyleaf.dask.line import Listener
from polyleaf.dask.messages import Deadlines
from polyleaf.dask.rank import Rank, abort_run, ask_run, forget_run, has_begun, open_run, run_rank
from polyleaf.peers.exchange import ExchangeError, Fenced, PeerFailed, PeerLost, Stopped
from polyleaf.training.callbacks import CallbackError

_log = logging.getLogger(__name__)


class PeerPaused(PeerLost):
    """A worker that lives, but does not begin: Dask paused it for want of memory."""


class Run:
    """Launches that belong together: what a function puts into ``rank.kept`` is there in the next launch.

    A context manager: at its end nothing of the run is left on the workers.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster; not an asynchronous one.
    deadlines : Deadlines, optional
        How long ranks wait for each other.

    Attributes
    ----------
    id : str
        Carried by every message: those of other runs are refused.
    epoch : int
        The number of the last launch: messages of earlier ones are refused.
    """

    def __init__(self, client: Client, deadlines: Deadlines | None = None) -> None:
        if client.asynchronous:
            raise TypeError("training needs a client that is not asynchronous")
        self.client = client
        self.deadlines = deadlines or Deadlines()
        self.id = uuid.uuid4().hex
        self.epoch = 0
        self._visited: set[str] = set()
        self._lost: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Drop all that the run has on workers that can be reached; on others it expires."""
        self._on_living(forget_run, self._visited, self.id)
        self._visited.clear()

    def ask(self, addresses: Iterable[str], question: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """Return what a function says of ``rank.kept`` on workers, by address; those that say None left out.

        Who is asked keeps it for a while longer. A worker that does not answer has nothing.
        """
        arguments = dict.fromkeys(addresses, (self.id, question, self.deadlines))
        said = run_on_workers(self.client, ask_run, arguments, self.deadlines.silence)
        for address, error in said.items():
            if isinstance(error, BaseException):
                _log.warning("run %s at %s: %s", self.id, address, error)
        return {
            address: one
            for address, one in said.items()
            if one is not None and not isinstance(one, BaseException)
        }

    def leave(self, addresses: Iterable[str]) -> None:
        """Drop all that the run has on some workers, which take no part any more."""
        arguments = dict.fromkeys(addresses, (self.id,))
        run_on_workers(self.client, forget_run, arguments, self.deadlines.silence)

    def launch(
        self,
        function: Callable[[Rank, Any], Any],
        shards: Mapping[str, Any],
        hear: Callable[[bytes], bytes] | None = None,
        look: Callable[[Mapping[str, WorkerState]], None] | None = None,
    ) -> Any:
        """Call ``function(rank, shard)`` on every worker at once; return what rank 0 returns.

        Parameters
        ----------
        function : callable
            The same loop on every worker.
        shards : mapping of str to anything
            What each worker gets, by address; ranks are in this order. Futures in lists and dicts come as
            their values; those that lie on the worker are not moved.
        hear : callable (bytes) -> bytes, optional
            Called here, in this thread, with what rank 0 says by ``rank.client``; returns the answer. Its
            errors end the launch.
        look : callable, optional
            Called every beat with the workers of the cluster.

        Raises
        ------
        PeerLost
            A worker died, is silent, or is paused before it began (`PeerPaused`). The others have stopped;
            another launch on them may follow.
        Exception
            The error that `function` raised first, on whichever rank; the others have stopped.
        """
        if not shards:
            raise ValueError("no worker holds data")
        self.epoch += 1
        addresses = tuple(shards)
        self._visited.update(addresses)
        self._lost -= set(addresses)
        futures: list[Future] = []
        listener = None if hear is None else Listener(self.client, addresses[0], self.id, self.epoch, hear)
        try:
            self._open(addresses)
            # As bytes: a worker that cannot read it where Dask reads tasks would die of it.
            task = cloudpickle.dumps(function)
            for rank, (address, shard) in enumerate(shards.items()):
                future = self.client.submit(
                    run_rank,
                    task,
                    self.id,
                    self.epoch,
                    shard,
                    key=f"polyleaf-rank-{self.id}-{self.epoch}-{rank}",
                    workers=[address],
                    allow_other_workers=False,
                    pure=False,
                    retries=0,
                )
                futures.append(future)
            self._watch(futures, addresses, listener, look)
            return at_client(self.client, futures[0].result)
        except BaseException as error:
            why = error.error if isinstance(error, CallbackError) else error
            news: ExchangeError = Stopped(f"the client stopped the run ({type(why).__name__}: {why})")
            if isinstance(error, PeerLost):
                self._lost.add(error.address)
                news = error
            self._on_living(abort_run, addresses, self.id, self.epoch, news)
            with contextlib.suppress(OSError):  # the scheduler is gone, or the client was closed
                self._await_end(futures, addresses)
                at_client(self.client, partial(self.client.cancel, futures, force=True))
            raise
        finally:
            if listener is not None:
                listener.close()

    def _open(self, addresses: Sequence[str]) -> None:
        arguments = {
            address: (self.id, self.epoch, rank, addresses, self.deadlines)
            for rank, address in enumerate(addresses)
        }
        results = run_on_workers(self.client, open_run, arguments, self.deadlines.start)
        for rank, address in enumerate(addresses):
            result = results[address]
            if isinstance(result, (OSError, TimeoutError, Fenced)):
                raise PeerLost(rank, address, f"it is not ready: {result}") from result
            if isinstance(result, BaseException):
                raise _naming(result, rank, address)
            if result != version("polyleaf"):
                raise RuntimeError(
                    f"the worker at {address} has polyleaf {result}, this process {version('polyleaf')}"
                )

    def _watch(
        self,
        futures: Sequence[Future],
        addresses: Sequence[str],
        listener: Listener | None,
        look: Callable[[Mapping[str, WorkerState]], None] | None,
    ) -> None:
        """Wait until all ranks have ended. Raise the first error; look after workers that nobody watches."""
        seen: dict[str, WorkerState] = {}
        silent = dict.fromkeys(addresses, 0)  # in beats
        idle = dict.fromkeys(addresses, 0)
        n_ended = 0
        while True:
            ended = self._ended(futures, listener)
            beats = int(len(ended) == n_ended)
            n_ended = len(ended)
            failed = [future for future in ended if future.status != "finished"]
            if failed:
                self._await_end(futures, addresses)
                raise _most_telling(self.client, futures, addresses)
            if len(ended) == len(futures):
                return
            now = worker_states(self.client)
            if look is not None:
                look(now)
            for rank, address in enumerate(addresses):
                if futures[rank].done():
                    continue
                if address not in now:
                    raise PeerLost(rank, address, "its worker has left the cluster")
                heard = address not in seen or now[address].last_seen != seen[address].last_seen
                silent[address] = 0 if heard else silent[address] + beats
                # Twice as patient as the ranks, who tell more.
                if silent[address] * self.deadlines.beat > 2 * self.deadlines.silence:
                    raise PeerLost(rank, address, "the scheduler hears nothing of it")
                waits = now[address].status != "running" and not self._has_begun(address)
                idle[address] = idle[address] + beats if waits else 0
                if idle[address] * self.deadlines.beat > self.deadlines.start:
                    raise PeerPaused(rank, address, f"it is {now[address].status}, and does not begin")
            seen = now

    def _has_begun(self, address: str) -> bool:
        """Whether the rank at a worker works; one that does not answer is looked after elsewhere."""
        arguments = {address: (self.id, self.epoch)}
        return run_on_workers(self.client, has_begun, arguments, self.deadlines.beat)[address] is not False

    def _ended(self, futures: Sequence[Future], listener: Listener | None = None) -> list[Future]:
        """Return the futures that are done, after a beat or when another one is."""
        pending = [future for future in futures if not future.done()]
        if pending and listener is not None:
            listener.listen(pending, self.deadlines.beat)
        elif pending:
            at_client(self.client, first_of, pending, None, self.deadlines.beat)
        return [future for future in futures if future.done()]

    def _await_end(self, futures: Sequence[Future], addresses: Sequence[str]) -> None:
        """Wait until the ranks on living workers have stopped: they do at their next exchange."""
        until = time.monotonic() + self.deadlines.silence
        while time.monotonic() < until:
            self._lost |= {
                error.address
                for error in _errors(self.client, futures).values()
                if isinstance(error, PeerLost)
            }
            living = set(self._living(addresses))
            at = zip(futures, addresses, strict=False)  # there may be no futures yet
            rest = [future for future, address in at if address in living and not future.done()]
            if not rest:
                return
            self._ended(rest)

    def _living(self, addresses: Sequence[str] | set[str]) -> list[str]:
        known = threads_of_workers(self.client)
        return [address for address in addresses if address in known and address not in self._lost]

    def _on_living(
        self, function: Callable[..., Any], addresses: Sequence[str] | set[str], *arguments: Any
    ) -> None:
        """Call a function on workers that are still there, as long as a living one may need to answer."""
        try:
            living = dict.fromkeys(self._living(addresses), arguments)
            results = run_on_workers(self.client, function, living, self.deadlines.silence)
        except OSError as error:  # the scheduler is gone, and what is on the workers expires
            _log.warning("%s of run %s: %s", function.__name__, self.id, error)
            return
        for address, result in results.items():
            if isinstance(result, BaseException):
                _log.warning("%s of run %s at %s: %s", function.__name__, self.id, address, result)


def launch(
    client: Client,
    function: Callable[[Rank, Any], Any],
    shards: Mapping[str, Any],
    deadlines: Deadlines | None = None,
) -> Any:
    """Call ``function(rank, shard)`` on every worker at once, in a run of its own; see `Run.launch`."""
    with Run(client, deadlines) as run:
        return run.launch(function, shards)


def _most_telling(client: Client, futures: Sequence[Future], addresses: Sequence[str]) -> BaseException:
    """Return the error that began it, with the worker it is of: what others say of it tells less."""

    def order(rank: int) -> int:
        for place, kind in enumerate((PeerLost, PeerFailed, Stopped, Fenced)):
            if isinstance(errors[rank], kind):
                return place
        return 4 if isinstance(errors[rank], ExchangeError) else -1

    errors = _errors(client, futures)
    raised = min(errors, key=order)
    error = errors[raised]
    if isinstance(error, PeerLost):  # says where
        return error
    rank = error.rank if isinstance(error, PeerFailed) else raised
    return _naming(error, rank, addresses[rank])


def _naming(error: BaseException, rank: int, address: str) -> BaseException:
    """Return an error with the worker that it is of."""
    error.add_note(f"(raised by rank {rank}, on the worker at {address})")
    return error


def _errors(client: Client, futures: Sequence[Future]) -> dict[int, BaseException]:
    """Return the errors that there are, by rank."""
    return {
        rank: _error_of(client, future)
        for rank, future in enumerate(futures)
        if future.done() and future.status != "finished"
    }


def _error_of(client: Client, future: Future) -> BaseException:
    """Return why a future failed. Raises OSError where its client was closed: that cancels all of them."""
    error: BaseException
    if not future.cancelled():
        error = at_client(client, future.exception)
    elif client.status in ("closing", "closed"):
        raise OSError("the client was closed")
    else:  # it has no error of its own
        error = CancelledError(f"{future.key} was cancelled")
    return error
