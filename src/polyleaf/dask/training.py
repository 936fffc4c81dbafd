"""A fit on a cluster: rows are coded where they lie, all workers grow trees, lost ones are made up for."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from distributed import Client

from polyleaf.dask.comms import drop_workers
from polyleaf.dask.digests import Digests, agreed, digests_of
from polyleaf.dask.launch import Run
from polyleaf.dask.messages import Deadlines
from polyleaf.dask.rank import Rank
from polyleaf.dask.reports import Reporter
from polyleaf.dask.rounds import ClientRounds
from polyleaf.dask.tables import ClusterRows
from polyleaf.estimators.shards import PreparedShard, prepare_shard, train_shard
from polyleaf.params.settings import seed_of
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.current import summed_over
from polyleaf.peers.exchange import ExchangeError, Fenced, PeerFailed, PeerLost, Stopped
from polyleaf.peers.gather import gather_notes

_log = logging.getLogger(__name__)

# So many launches in a row may fail without a round done in between.
_MOST_FAILURES = 5


def fit_on_cluster(
    client: Client,
    estimator: Any,
    training: ClusterRows,
    evals: Sequence[ClusterRows],
    deadlines: Deadlines,
    rounds: ClientRounds,
) -> None:
    """Train on the workers of a cluster, until `rounds` has heard of all rounds.

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
    start, noted, waits = rounds.start, rounds.noted, rounds.waits
    measures = rounds.measures and not evals

    def prepare(rank: Rank, shard: Sequence[Any]) -> int:
        peers = Collectives(rank.exchange)
        own: Digests = {}
        for rows, parts in zip(described, shard, strict=True):
            own |= digests_of(rows.X_name, parts)
        rank.kept["digests"] = agreed(own, rank.kept.get("digests", {}), peers)
        given = [
            rows.given(parts, none, peers) for rows, parts, none in zip(described, shard, empty, strict=True)
        ]
        rank.kept["prepared"] = prepare_shard(
            estimator, given[0], given[1:], rank.n_threads, seed=seed, start=start, noted=noted
        )
        with summed_over(peers):
            return int(max(gather_notes(len(rank.kept.setdefault("done", [])))))

    def train(rank: Rank, known: list[bytes] | None) -> None:
        peers = Collectives(rank.exchange)
        prepared: PreparedShard = rank.kept["prepared"]
        done = rank.kept["done"]
        if known is not None:  # those who knew of them are lost
            done[:] = [pickle.loads(trees) for trees in known]
        reporter = Reporter(rank.client, prepared, peers, done, waits)
        train_shard(replace(prepared, callbacks=[reporter], measured=measures), peers, done)

    with Run(client, deadlines) as run:
        failures = n_done = 0
        workers: set[str] = set()
        while True:
            try:
                workers = set(client.nthreads())
                shards = _shards(client, training, evals)
                n_known = run.launch(prepare, shards)
                before, n_done = n_done, max(n_known, len(rounds))
                if n_done > before:
                    failures = 0
                known = dict.fromkeys(shards) | {next(iter(shards)): rounds.unknown_to(n_known)}
                del shards  # Dask may drop the partitions: the workers have their codes
                run.launch(train, known, rounds.hear)
                return
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
