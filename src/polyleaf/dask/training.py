"""A fit on a cluster: rows are coded where they lie, all workers grow trees, lost ones are made up for."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from distributed import Client

from polyleaf.dask.comms import drop_workers
from polyleaf.dask.holdings import Holdings
from polyleaf.dask.kept_rows import KeptRows, PauseAfterRound, take_rows
from polyleaf.dask.launch import PeerPaused, Run
from polyleaf.dask.messages import Deadlines
from polyleaf.dask.rank import Rank
from polyleaf.dask.tables import ClusterRows
from polyleaf.estimators.shards import train_shard
from polyleaf.model.fitted import SavedModel
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.exchange import ExchangeError, Fenced, PeerFailed, PeerLost, Stopped

_log = logging.getLogger(__name__)

# So many launches in a row may fail without a round done in between.
_MOST_FAILURES = 5


def fit_on_cluster(
    client: Client, estimator: Any, training: ClusterRows, evals: Sequence[ClusterRows], deadlines: Deadlines
) -> SavedModel:
    """Train on the workers of a cluster; return the model.

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
    tables = (training, *evals)
    described = [rows.described() for rows in tables]
    empty = [rows.empty() for rows in tables]

    def prepare(rank: Rank, given: Any) -> None:
        take_rows(rank, estimator, described, empty, given)

    def train(rank: Rank, _: Any) -> SavedModel | None:
        peers = Collectives(rank.exchange)
        rows: KeptRows = rank.kept["rows"]
        done = rank.kept.setdefault("done", [])
        pause = PauseAfterRound(rank.kept)
        began = time.monotonic()
        prepared = replace(rows.shard, callbacks=[*rows.shard.callbacks, pause])
        model = train_shard(prepared, peers, done, rank.kept.setdefault("history", {}))
        if rank.exchange.rank == 0:
            _log.info(
                "%d rounds in %.1f s: %d exchanges, %d bytes sent by this worker, %.1f s in exchanges",
                len(done),
                time.monotonic() - began,
                peers.n_exchanges,
                peers.bytes_sent,
                peers.seconds,
            )
        return None if pause.paused else model

    with Run(client, deadlines) as run:
        holdings = Holdings(client, run, tables)
        failures = n_done = 0
        workers: set[str] = set()
        while True:
            try:
                workers = set(client.nthreads())
                plan = holdings.planned()
                before, n_done = n_done, plan.n_done
                if n_done > before:
                    failures = 0
                run.launch(prepare, plan.shards)
                addresses = dict.fromkeys(plan.shards)
                del plan  # Dask may drop the partitions: the workers have their codes
                gc.collect()  # errors of its own that Dask caught meanwhile refer to us, and to themselves
                model: SavedModel | None = run.launch(train, addresses, holdings.look)
                if model is not None:
                    return model
            except (ExchangeError, ValueError, KeyError) as error:
                failures += 1
                lost = isinstance(error, (PeerLost, PeerFailed, Stopped, Fenced))
                # While rows are placed, a worker that goes is an error of another kind.
                if failures > _MOST_FAILURES or not (lost or workers - set(client.nthreads())):
                    raise
                if isinstance(error, PeerPaused):
                    holdings.leave([error.address])
                elif isinstance(error, PeerLost):
                    drop_workers(client, [error.address])
                _log.warning("%s; going on with the rounds done (failure %d)", error, failures)
