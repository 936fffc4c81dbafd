"""A fit on a cluster: rows are coded where they lie, all workers grow trees, lost ones are made up for."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

from distributed import Client

from polyleaf.dask.comms import drop_workers
from polyleaf.dask.digests import Digests, agreed, digests_of
from polyleaf.dask.launch import Run
from polyleaf.dask.messages import Deadlines
from polyleaf.dask.rank import Rank
from polyleaf.dask.tables import ClusterRows
from polyleaf.estimators.shards import PreparedShard, prepare_shard, train_shard
from polyleaf.model.fitted import SavedModel
from polyleaf.params.settings import seed_of
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.exchange import ExchangeError, Fenced, PeerFailed, PeerLost, Stopped

_log = logging.getLogger(__name__)

# So many launches in a row may fail without a round done in between.
_MOST_FAILURES = 5


def fit_on_cluster(
    client: Client, estimator: Any, training: ClusterRows, evals: Sequence[ClusterRows], deadlines: Deadlines
) -> SavedModel:
    """Train on the workers of a cluster; return the model.

    A worker that is lost costs the round that was under way and the time to read and code the rows again:
    the others know the rounds done, Dask computes the lost partitions on another worker, and the run goes on.

    Raises
    ------
    ExchangeError
        When workers are lost again and again.
    """
    seed = seed_of(estimator.random_state)  # here: a RandomState of the client advances, not copies of it
    described = [rows.described() for rows in (training, *evals)]
    empty = [rows.empty() for rows in (training, *evals)]

    def prepare(rank: Rank, shard: Sequence[Any]) -> int:
        peers = Collectives(rank.exchange)
        own: Digests = {}
        for rows, parts in zip(described, shard, strict=True):
            own |= digests_of(rows.X_name, parts)
        rank.kept["digests"] = agreed(own, rank.kept.get("digests", {}), peers)
        given = [
            rows.given(parts, none, peers) for rows, parts, none in zip(described, shard, empty, strict=True)
        ]
        rank.kept["prepared"] = prepare_shard(estimator, given[0], given[1:], rank.n_threads, seed)
        return len(rank.kept.setdefault("done", []))

    def train(rank: Rank, _: Any) -> SavedModel:
        peers = Collectives(rank.exchange)
        prepared: PreparedShard = rank.kept["prepared"]
        began = time.monotonic()
        model = train_shard(prepared, peers, rank.kept["done"])
        if rank.exchange.rank == 0:
            _log.info(
                "%d rounds in %.1f s: %d exchanges, %d bytes sent by this worker, %.1f s in exchanges",
                len(rank.kept["done"]),
                time.monotonic() - began,
                peers.n_exchanges,
                peers.bytes_sent,
                peers.seconds,
            )
        return model

    with Run(client, deadlines) as run:
        failures = n_done = 0
        workers: set[str] = set()
        while True:
            try:
                workers = set(client.nthreads())
                shards = _shards(client, training, evals)
                before, n_done = n_done, run.launch(prepare, shards)
                if n_done > before:
                    failures = 0
                addresses = dict.fromkeys(shards)
                del shards  # Dask may drop the partitions: the workers have their codes
                model: SavedModel = run.launch(train, addresses)
                return model
            except (ExchangeError, ValueError, KeyError) as error:
                failures += 1
                lost = isinstance(error, (PeerLost, PeerFailed, Stopped, Fenced))
                # While rows are placed, a worker that goes is an error of another kind.
                if failures > _MOST_FAILURES or not (lost or workers - set(client.nthreads())):
                    raise
                if isinstance(error, PeerLost):
                    drop_workers(client, [error.address])
                _log.warning("%s; going on with the rounds done (failure %d)", error, failures)


def _shards(client: Client, training: ClusterRows, evals: Sequence[ClusterRows]) -> dict[str, list[Any]]:
    """Return the partitions of all tables by worker: of the training rows, then of each evaluation set."""
    workers = sorted(client.nthreads())
    placed = [training.placed(client, workers)]
    holders = list(placed[0])
    placed += [rows.placed(client, holders) for rows in evals]
    return {address: [plan.get(address, []) for plan in placed] for address in holders}
