"""A fit on a cluster: rows are coded where they lie, all workers grow trees, lost ones are made up for."""

from __future__ import annotations

import gc
import logging
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from distributed import Client

from polyleaf.dask.comms import drop_workers, threads_of_workers
from polyleaf.dask.config import Config
from polyleaf.dask.holdings import Holdings
from polyleaf.dask.kept_rows import KeptRows, PauseAfterRound, take_rows
from polyleaf.dask.launch import PeerPaused, Run
from polyleaf.dask.rank import Rank
from polyleaf.dask.reports import Reporter
from polyleaf.dask.rounds import ClientRounds, KnownRounds
from polyleaf.dask.tables import ClusterRows
from polyleaf.estimators.shard_training import Progress, train_shard
from polyleaf.estimators.shards import Asked
from polyleaf.params.settings import seed_of
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.exchange import ExchangeError, Fenced, PeerFailed, PeerLost, Stopped

_log = logging.getLogger(__name__)

# So many launches in a row may fail without a round done in between.
_MOST_FAILURES = 5


def fit_on_cluster(
    client: Client,
    estimator: Any,
    training: ClusterRows,
    evals: Sequence[ClusterRows],
    config: Config,
    rounds: ClientRounds,
) -> None:
    """Train on the workers of a cluster, until `rounds` has heard of all rounds.

    A worker that is lost costs the round that was under way, and the time to read and code its rows again:
    the others keep theirs and know the rounds done, Dask computes the lost partitions on another worker, and
    the run goes on. Workers that come take rows after the round under way.

    Raises
    ------
    ExchangeError
        When workers are lost again and again.
    LostRows
        When Dask cannot compute the rows of a lost worker.
    """
    seed = seed_of(estimator.random_state)  # here: a RandomState of the client advances, not copies of it
    tables = (training, *evals)
    described = [rows.described() for rows in tables]
    empty = [rows.empty() for rows in tables]
    asked = Asked(estimator, seed, rounds.start, rounds.noted, rounds.measures and not evals, rounds.fit)
    waits, shared_memory = rounds.waits, config.shared_memory

    def prepare(rank: Rank, given: Any) -> None:
        take_rows(rank, asked, described, empty, given)

    def train(rank: Rank, known: KnownRounds | None) -> bool:
        peers = Collectives(rank.exchange, shared_memory)
        rows: KeptRows = rank.kept["rows"]
        progress: Progress = rank.kept.setdefault("progress", Progress())
        if known is not None:  # those who knew of them are lost
            progress.take(known.progress())
        pause = PauseAfterRound(rank.kept, rank.epoch)
        reporter = Reporter(rank.client, rows.shard, peers, progress, waits)
        prepared = replace(rows.shard, callbacks=[reporter, pause])
        train_shard(prepared, peers, progress, lambda: pause.paused)
        return not pause.paused

    with Run(client, config.deadlines) as run, closing(Holdings(client, run, tables)) as holdings:
        failures, extent = 0, (0, 0)
        workers: set[str] = set()
        while True:
            try:
                workers = set(threads_of_workers(client))
                plan = holdings.planned()
                before, extent = extent, max(plan.extent, rounds.extent)
                if extent > before:
                    failures = 0
                run.launch(prepare, plan.shards)
                known = dict.fromkeys(plan.shards) | {next(iter(plan.shards)): rounds.unknown_to(plan.extent)}
                del plan  # Dask may drop the partitions: the workers have their codes
                gc.collect()  # errors of its own that Dask caught meanwhile refer to us, and to themselves
                if run.launch(train, known, rounds.hear, holdings.look):
                    return
            except (ExchangeError, ValueError, KeyError) as error:
                failures += 1
                lost = isinstance(error, (PeerLost, PeerFailed, Stopped, Fenced))
                # While rows are placed, a worker that goes is an error of another kind.
                if failures > _MOST_FAILURES or not (lost or workers - set(threads_of_workers(client))):
                    raise
                if isinstance(error, PeerPaused):
                    holdings.leave([error.address])
                elif isinstance(error, PeerLost):
                    drop_workers(client, [error.address])
                words = " ".join([str(error), *getattr(error, "__notes__", [])])
                _log.warning("%s; going on with the rounds done (failure %d)", words, failures)
