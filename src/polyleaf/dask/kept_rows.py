"""What a worker keeps of a run from launch to launch: its rows, what is known of all, the rounds done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from polyleaf.dask.digests import Digests, agreed, digests_of
from polyleaf.dask.rank import Rank
from polyleaf.dask.tables import ClusterRows
from polyleaf.estimators.shard_facts import ShardFacts
from polyleaf.estimators.shard_training import Extent, Progress
from polyleaf.estimators.shards import Asked, PreparedShard, prepare_shard
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.exchange import Fenced

Numbers = list[list[int]]  # of partitions: of the training rows, then of each evaluation set


@dataclass(frozen=True)
class Share:
    """What a rank is to have.

    Attributes
    ----------
    born : int
        The launch in which all rows were read: what was found of them then holds for all that come later.
    anew : bool
        Whether this is that launch.
    wanted : list of list of int
        Partitions that the rank has in the end.
    """

    born: int
    anew: bool
    wanted: Numbers

    def with_parts(self, parts: Sequence[Any]) -> dict[str, Any]:
        """Return what `Run.launch` is given: the tables of those partitions that the rank does not have."""
        return {"share": self, "parts": list(parts)}


@dataclass(frozen=True)
class Holding:
    """What a worker has.

    Attributes
    ----------
    born : int
        As of `Share`.
    pieces : list of list of int
        Partitions.
    extent : tuple of int
        How far it knows the training to be.
    """

    born: int
    pieces: Numbers
    extent: Extent


@dataclass
class KeptRows:
    """The rows of a rank, as they are kept."""

    born: int
    shard: PreparedShard


def holding_of(kept: Mapping[str, Any]) -> Holding | None:
    """Return what a worker has; None: nothing that a launch could go on from."""
    rows: KeptRows | None = kept.get("rows")
    return None if rows is None else Holding(rows.born, rows.shard.pieces, progress_in(kept).extent)


def progress_in(kept: Mapping[str, Any]) -> Progress:
    """Return how far a worker knows the training to be."""
    progress: Progress = kept.get("progress", Progress())
    return progress


def take_rows(
    rank: Rank,
    asked: Asked,
    tables: Sequence[ClusterRows],
    empty: Sequence[Mapping[str, Any]],
    given: Mapping[str, Any],
) -> None:
    """Have the rows of a share: drop what others have now, read what is missing, keep the rest.

    All ranks call it. Rows that are read again get the cut points, categories, classes and units that are
    known, from whichever rank knows them; nothing but what is missing is read.

    Parameters
    ----------
    rank : Rank
        Keeps the rows.
    asked : Asked
        What is to be trained.
    tables : sequence of ClusterRows
        Names of the training rows and of the evaluation sets.
    empty : sequence of dict
        Their tables without rows.
    given : mapping
        From `Share.with_parts`.
    """
    share: Share = given["share"]
    peers = Collectives(rank.exchange)
    own: Digests = {}
    for rows, parts in zip(tables, given["parts"], strict=True):
        own |= digests_of(rows.X_name, parts)
    rank.kept["digests"] = agreed(own, rank.kept.get("digests", {}), peers)
    kept: KeptRows | None = rank.kept.get("rows")
    if kept is not None and (share.anew or kept.born != share.born):
        kept = None
        del rank.kept["rows"]
    facts = None
    if not share.anew:
        facts = _facts_of_all(None if kept is None else kept.shard.facts, peers)
    if kept is not None and not any(given["parts"]):
        now = kept.shard.of_pieces(share.wanted)
    else:
        inputs = [
            rows.given(parts, none, peers)
            for rows, parts, none in zip(tables, given["parts"], empty, strict=True)
        ]
        now = prepare_shard(asked, inputs[0], inputs[1:], rank.n_threads, facts)
        if kept is not None:
            now = kept.shard.of_pieces(share.wanted).followed_by(now)
    if [sorted(some) for some in now.pieces] != [sorted(some) for some in share.wanted]:
        raise Fenced("what this worker had is gone")
    assert asked.fit is not None
    rank.kept["rows"] = KeptRows(share.born, replace(now, callbacks=asked.fit.callbacks))


def _facts_of_all(own: ShardFacts | None, peers: Collectives) -> ShardFacts:
    """Return what is known of all rows, from the first rank that knows it."""
    knows = [bytes(text) == b"1" for text in peers.all_gather(b"0" if own is None else b"1")]
    if not any(knows):
        raise Fenced("what the workers had is gone")
    gives = peers.rank == knows.index(True)
    text = own.written() if own is not None and gives and not all(knows) else b""
    received = peers.all_to_all([b"" if known else text for known in knows])
    return own or ShardFacts.read(received[knows.index(True)])


class PauseAfterRound:
    """A callback: ends a launch after a round where the client asked for it, so that another one follows.

    Parameters
    ----------
    kept : dict
        What the run keeps on the worker of the first rank.
    epoch : int
        Which launch this is.

    Attributes
    ----------
    paused : bool
        Whether it did.
    """

    def __init__(self, kept: dict[str, Any], epoch: int) -> None:
        self._kept = kept
        self._epoch = epoch
        self.paused = False

    def after_round(self, state: Any) -> bool:
        """Return whether the launch ends; after the last round it ends anyway."""
        self.paused = self._kept.get("pause") == self._epoch and state.n_done < state.n_rounds
        return self.paused


def ask_for_pause(kept: dict[str, Any], epoch: int) -> bool:
    """Have a launch end after the round under way, or after its first one where it has not begun."""
    kept["pause"] = epoch
    return True
