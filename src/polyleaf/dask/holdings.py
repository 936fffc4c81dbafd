"""Which worker has which partitions of all tables, from launch to launch, as the client plans it.

Partitions stay with the workers that keep their rows. Those that nobody keeps are computed again, and so are
those that move because a worker came, or would have much more rows than others.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import CancelledError, Future, wait
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

from distributed import Client

from polyleaf.dask.balance import assign
from polyleaf.dask.comms import WorkerState, ask_worker, worker_states
from polyleaf.dask.kept_rows import Holding, Numbers, Share, ask_for_pause, holding_of
from polyleaf.dask.launch import Run
from polyleaf.dask.rank import own_version
from polyleaf.dask.tables import ClusterRows
from polyleaf.estimators.shard_training import Extent

_log = logging.getLogger(__name__)

Lengths = dict[str, list[int]]  # rows of each partition of each table, by the name of the table


@dataclass(frozen=True)
class Launch:
    """What a launch begins with.

    Attributes
    ----------
    shards : dict of str to dict
        What each worker gets; see `Share.with_parts`.
    extent : tuple of int
        How far some worker knows the training to be.
    """

    shards: dict[str, dict[str, Any]]
    extent: Extent


class Holdings:
    """Who has what in a run.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster.
    run : Run
        Whose rows they are.
    tables : sequence of ClusterRows
        The training rows, then each evaluation set.
    """

    def __init__(self, client: Client, run: Run, tables: Sequence[ClusterRows]) -> None:
        self._client = client
        self._run = run
        self._tables = tables
        self._lengths: list[Lengths] = []
        self._places: list[dict[int, str]] = []  # by table: the worker of each partition
        self._seen: set[str] = set()
        self._come: set[str] = set()
        self._left: set[str] = set()
        self._versions: dict[str, str] = {}
        self._questions: dict[str, Future[str]] = {}  # for a version, not answered yet

    def close(self) -> None:
        """Wait for no more answers."""
        for question in self._questions.values():
            question.cancel()
        self._questions.clear()

    def planned(self) -> Launch:
        """Return the next launch, with all tables that it needs in the memory of workers.

        Raises
        ------
        ValueError
            When no worker can take part.
        """
        states = self._running()
        if self._places:
            fit = self._fit(states, self._run.deadlines.beat) | self._visited()
            if not fit & states.keys():  # those that had rows are gone: whoever came is needed
                fit = self._fit(states, self._run.deadlines.start)
            states = {address: state for address, state in states.items() if address in fit}
        threads = {address: state.n_threads for address, state in states.items()}
        held: dict[str, Holding] = self._run.ask(self._visited() & set(threads), holding_of)
        born = max((one.born for one in held.values()), default=0)
        held = {address: one for address, one in held.items() if one.born == born}
        extent = max((one.extent for one in held.values()), default=(0, 0))
        shards = self._going_on(threads, held, born) if held else self._anew(sorted(threads))
        self._seen = set(threads)
        return Launch(shards, extent)

    def look(self, states: Mapping[str, WorkerState]) -> None:
        """Have the launch under way end after its round where workers have come that would take rows.

        A worker counts from the second look at it on: several may come at once. It is asked for its version,
        and nobody waits for the answer: a worker that is silent counts once it has given one.
        """
        running = {address: one.n_threads for address, one in states.items() if one.status == "running"}
        come = running.keys() - self._seen
        here = set(self._places[0].values())
        if not come or come != self._come or not here <= running.keys():
            self._come = set(come)
            return
        come = self._fit(come)
        self._seen |= come
        threads = {address: running[address] for address in here | come}
        if come & set(self._assigned(0, threads, self._holders(0)).values()):
            first, asked = self._first(), partial(ask_for_pause, epoch=self._run.epoch)
            if not self._run.ask([first], asked):  # it answers nobody: either it is lost, or asked again
                self._seen -= come
                return
            _log.info("%s came, and will take rows", ", ".join(sorted(come)))

    def leave(self, addresses: Collection[str]) -> None:
        """Have workers drop what they have: others get their rows."""
        self._run.leave(addresses)
        self._left.update(addresses)

    def _visited(self) -> set[str]:
        return {address for places in self._places for address in places.values()} - self._left

    def _fit(self, workers: Collection[str], seconds: float = 0.0) -> set[str]:
        """Return those of some workers that came later which say that they have the polyleaf of this process.

        Those that have not been asked are, and may take so many seconds to answer; who takes longer is looked
        at again when this is called the next time.
        """
        own = version("polyleaf")
        for address in workers:
            if address not in self._versions and address not in self._questions:
                self._questions[address] = ask_worker(self._client, own_version, address)
        wait([self._questions[address] for address in workers if address in self._questions], seconds)
        for address in [address for address, question in self._questions.items() if question.done()]:
            found = _answer_to(self._questions.pop(address))
            if found is None:  # the connection broke; it is asked again
                continue
            self._versions[address] = found
            if found != own:
                _log.warning("%s takes no part: polyleaf there is %s, here %s", address, found, own)
        return {address for address in workers if self._versions.get(address) == own}

    def _first(self) -> str:
        """Return the worker of the first rank."""
        return next(iter(self._places[0].values()))

    def _running(self) -> dict[str, WorkerState]:
        """Return the workers that begin what they are given.

        Those that have rows and are paused get some time; then others get their rows.
        """
        left = self._run.deadlines.start
        while True:
            states = worker_states(self._client)
            running = {address: one for address, one in states.items() if one.status == "running"}
            paused = [address for address in sorted(self._visited()) if _is_paused(states, address)]
            if running and not paused:
                break
            if not states and not self._places:
                raise ValueError("the cluster has no workers")
            if left <= 0 and not running:
                kinds = ", ".join(sorted({one.status for one in states.values()})) or "there are none"
                raise ValueError(f"the cluster has no workers that begin anything: {kinds}")
            if left <= 0:
                _log.warning("%s: paused, so that others get their rows", ", ".join(paused))
                self.leave(paused)
                break
            left -= self._run.deadlines.beat
            time.sleep(self._run.deadlines.beat)
        self._come = set()
        return running

    def _anew(self, workers: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return shards of all rows, which nobody has."""
        plans = []
        for rows in self._tables:
            plans.append(rows.placed(self._client, workers))
            workers = list(plans[0].parts)  # evaluation sets go where training rows are
        self._lengths = [plan.lengths for plan in plans]
        self._places = [
            dict(sorted((part.number, address) for address, parts in plan.parts.items() for part in parts))
            for plan in plans
        ]
        parts = [plan.shards() for plan in plans]
        return self._shards(self._run.epoch + 1, True, workers, parts)

    def _going_on(
        self, threads: Mapping[str, int], held: Mapping[str, Holding], born: int
    ) -> dict[str, dict[str, Any]]:
        """Return shards in which workers keep what they have, with the tables of what they have not."""
        places: list[dict[int, str]] = []
        parts = []
        for table, rows in enumerate(self._tables):
            has = {address: set(one.pieces[table]) for address, one in held.items()}
            holders = {
                number: [address for address, numbers in has.items() if number in numbers]
                for number in self._places[table]
            }
            if table:  # evaluation sets go where training rows are
                threads = {address: threads[address] for address in places[0].values()}
            places.append(self._assigned(table, threads, holders))
            missing = {
                number: address
                for number, address in places[-1].items()
                if number not in has.get(address, ())
            }
            _log.info("%d of %d partitions of %s are computed", len(missing), len(places[-1]), rows.X_name)
            lengths, hold = self._lengths[table], self._hold(held)
            parts.append(rows.placed_again(self._client, lengths, missing, list(threads), hold))
        self._places = places
        self._left -= set(places[0].values())
        workers = list(dict.fromkeys(places[0].values()))
        return self._shards(born, False, workers, parts)

    def _hold(self, held: Collection[str]) -> Any:
        """Return a function that has workers keep what they have."""
        return lambda: self._run.ask(held, holding_of)

    def _holders(self, table: int) -> dict[int, list[str]]:
        return {number: [address] for number, address in self._places[table].items()}

    def _assigned(
        self, table: int, threads: Mapping[str, int], holders: Mapping[int, Sequence[str]]
    ) -> dict[int, str]:
        """Return a worker for each partition: one that has it, unless that would be unfair to it."""
        lengths = self._lengths[table][self._tables[table].X_name]
        numbers = sorted(holders)
        found = assign([lengths[number] for number in numbers], [holders[n] for n in numbers], threads)
        return dict(zip(numbers, found, strict=True))

    def _shards(
        self, born: int, anew: bool, workers: Sequence[str], parts: Sequence[Mapping[str, list[Any]]]
    ) -> dict[str, dict[str, Any]]:
        wanted: dict[str, Numbers] = {address: [[] for _ in self._tables] for address in workers}
        for table, places in enumerate(self._places):
            for number, address in places.items():
                wanted[address][table].append(number)
        return {
            address: Share(born, anew, wanted[address]).with_parts([one.get(address, []) for one in parts])
            for address in workers
        }


def _answer_to(question: Future[str]) -> str | None:
    """Return what a worker said, or its error in words; None where it said nothing."""
    try:
        return question.result()
    except (OSError, CancelledError):
        return None
    except Exception as error:
        return f"not to be had ({type(error).__name__}: {error})"


def _is_paused(states: Mapping[str, WorkerState], address: str) -> bool:
    return address in states and states[address].status == "paused"
