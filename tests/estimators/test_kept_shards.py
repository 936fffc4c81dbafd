"""Shards that lose pieces and get others go on from the rounds done, to the model file of a plain fit."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from test_fit_shards import CASES, COMMON, TABLE, N, file_of, taken

from polyleaf.data.eval_sets import EvalInput
from polyleaf.estimators.shard_facts import ShardFacts
from polyleaf.estimators.shard_training import Progress, train_shard
from polyleaf.estimators.shards import Asked, prepare_shard
from polyleaf.peers.answers import Answers, Remembered
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.exchange import ExchangeError
from polyleaf.peers.local import run_local
from polyleaf.peers.pieces import Pieces

pytestmark = [
    pytest.mark.cpu_only("shards are of the CPU"),
    pytest.mark.other_threads("text of frames is in memory that Arrow shares out to threads"),
]

CUTS = [40, 41, 90, 90, 120]  # one piece has one row, and one has none
UNSEEN = np.arange(0, N, 4)


def rows_of(name, pieces, peers):
    """The rows of some pieces, of the training table and of the evaluation set."""
    _, y, weight = CASES[name]

    def part(X, y, weight, whole, name):
        rows = np.concatenate([np.empty(0, dtype=int), *(whole[k] for k in pieces)])
        of_pieces = Pieces(peers, tuple(pieces), tuple(len(whole[k]) for k in pieces))
        return EvalInput(name, X.iloc[rows], taken(y, rows), taken(weight, rows), "X", "y", "w", of_pieces)

    places = np.split(np.arange(len(UNSEEN)), np.searchsorted(UNSEEN, CUTS))
    return (
        part(TABLE, y, weight, np.split(np.arange(N), CUTS), "training"),
        part(TABLE.iloc[UNSEEN], taken(y, UNSEEN), None, places, "validation_0"),
    )


def plain_file(name, folder, **params):
    estimator, y, weight = CASES[name]
    estimator.set_params(**COMMON | {"n_estimators": 4} | params)
    evals = (TABLE.iloc[UNSEEN], taken(y, UNSEEN))
    estimator.fit(TABLE, y, sample_weight=weight, eval_set=[evals]).save_model(folder / "plain")
    return (folder / "plain").read_bytes()


def after_two(state):
    return state.round == 1


@pytest.mark.parametrize("name", CASES)
def test_what_was_lost_is_read_by_what_is_known(name, tmp_path):
    """One shard is lost, a new one comes, and another one gives a piece to it."""
    expected = plain_file(name, tmp_path)
    estimator = CASES[name][0]

    def first(exchange):
        peers = Collectives(exchange)
        training, watched = rows_of(name, [[0, 3], [1, 4], [2, 5]][exchange.rank], peers)
        shard = prepare_shard(Asked(estimator), training, [watched], 1)
        shard.callbacks = [after_two]
        progress = Progress()
        train_shard(shard, peers, progress)
        assert len(progress.done) == shard.scores.n_rounds == 2
        return shard, progress

    kept = run_local(3, first)
    wanted = [[0, 3, 1], [4, 5], [2]]

    def second(exchange):
        peers, own = Collectives(exchange), wanted[exchange.rank]
        shard, progress = (None, Progress()) if exchange.rank == 1 else kept[exchange.rank]
        lost = own if shard is None else [k for k in own if k not in shard.pieces[0]]
        training, watched = rows_of(name, lost, peers)
        facts = ShardFacts.read(kept[0][0].facts.written())
        now = prepare_shard(Asked(estimator), training, [watched], 1, facts=facts)
        if shard is not None:
            left = shard.of_pieces([own, own])
            assert len(left.scores.values) == left.problem.data.X.shape[0]
            now = replace(left.followed_by(now), callbacks=[])
        assert now.pieces == [own, own]
        return train_shard(now, peers, progress)

    for rank, model in enumerate(run_local(3, second)):
        assert file_of(tmp_path / f"rank {rank}", model) == expected


class Limited:
    """An exchange that fails for all ranks alike, after so many."""

    def __init__(self, exchange, limit):
        self._exchange, self._left = exchange, limit
        self.rank, self.size = exchange.rank, exchange.size

    def exchange(self, parts):
        self._left -= 1
        if self._left < 0:
            raise ExchangeError("lost")
        return self._exchange.exchange(parts)


@pytest.mark.parametrize(("strategy", "step"), [("multi_output_tree", 9), ("one_output_per_tree", 23)])
def test_a_failure_at_any_moment_changes_nothing(strategy, step, tmp_path):
    """Scores are kept if they are those of whole rounds, and metrics if the round counts."""
    params = {"multi_strategy": strategy, "max_depth": 2, "eval_metric": ["mae", "rmse"]}
    expected = plain_file("targets", tmp_path, **params)
    estimator = CASES["targets"][0]
    kept_scores, rounds = set(), set()

    def trained(exchange, limit):
        peers = Collectives(exchange)
        training, watched = rows_of("targets", [[0, 2, 4], [1, 3, 5]][exchange.rank], peers)
        shard = prepare_shard(Asked(estimator), training, [watched], 1)
        progress = Progress()
        with contextlib.suppress(ExchangeError):
            train_shard(shard, Collectives(Limited(exchange, limit)), progress)
        if exchange.rank == 0:
            kept_scores.add(shard.scores.values is not None)
            rounds.add(len(progress.done))
        assert shard.scores.values is None or shard.scores.n_rounds == len(progress.done)
        return train_shard(shard, peers, progress)

    try:
        for limit in range(0, 17 * step, step):
            for model in run_local(2, lambda exchange, limit=limit: trained(exchange, limit)):
                assert file_of(tmp_path / "again", model) == expected
    finally:
        estimator.set_params(multi_strategy="multi_output_tree", max_depth=6, eval_metric=None)
    assert rounds >= {0, 1, 2, 3}
    assert kept_scores == {True, False}


def test_other_questions_than_those_that_were_answered_are_errors():
    answers = Answers(2, [[b"1", b"2"], np.array([3.0])])
    once = Remembered(answers)
    assert (once.rank, once.size, once.all_gather(b"0")) == (0, 2, [b"1", b"2"])
    sums = np.zeros(1)
    once.largest(sums)
    assert sums == [3.0]
    with pytest.raises(ExchangeError, match="more was asked for"):
        once.add(sums)
    with pytest.raises(ExchangeError, match="something else was noted"):
        Remembered(answers).add(sums)
    again = Remembered(answers)
    again.all_gather(b"")
    with pytest.raises(ExchangeError, match="a sum was noted"):
        again.all_gather(b"")
    with pytest.raises(TypeError, match="cannot be answered again"):
        again.exchange_parts([], 1)
