"""Ranks in threads: everybody gets what was sent, in order, and nobody waits for a rank that is gone."""

from __future__ import annotations

import threading

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from polyleaf.peers.exchange import PeerFailed, PeerLost
from polyleaf.peers.local import local_group, run_local

pytestmark = [
    pytest.mark.cpu_only("messages between threads"),
    pytest.mark.python_only("messages between threads"),
]


@settings(max_examples=25, deadline=None)
@given(size=st.integers(1, 6), rounds=st.integers(1, 5), seed=st.integers(0, 2**32 - 1))
def test_every_rank_gets_what_was_sent_to_it(size, rounds, seed):
    lengths = np.random.default_rng(seed).integers(0, 200, (rounds, size, size))

    def part(turn, sender, receiver):
        return bytes([turn, sender, receiver]) * int(lengths[turn, sender, receiver])

    def one(exchange):
        return [
            [bytes(got) for got in exchange.exchange([part(turn, exchange.rank, to) for to in range(size)])]
            for turn in range(rounds)
        ]

    for rank, received in enumerate(run_local(size, one)):
        for turn in range(rounds):
            assert received[turn] == [part(turn, sender, rank) for sender in range(size)]


def test_what_was_sent_may_be_overwritten_at_once():
    def one(exchange):
        mine = np.full(1000, exchange.rank)
        received = exchange.exchange([mine] * 3)
        others = [received[other] for other in range(3) if other != exchange.rank]
        mine[:] = -1
        exchange.exchange([b""] * 3)
        return [set(np.frombuffer(other, dtype=mine.dtype).tolist()) for other in others]

    assert run_local(3, one) == [[{1}, {2}], [{0}, {2}], [{0}, {1}]]


@pytest.mark.parametrize("culprit", [0, 1, 3])
def test_a_rank_that_raises_wakes_the_others_by_its_name(culprit):
    woken = {}

    def one(exchange):
        exchange.exchange([b"first"] * 4)
        if exchange.rank == culprit:
            raise LookupError("no such column")
        try:
            exchange.exchange([b"second"] * 4)
        except PeerFailed as error:
            woken[exchange.rank] = error
            with pytest.raises(PeerFailed):  # and stays so
                exchange.exchange([b"third"] * 4)
            raise

    with pytest.raises(LookupError, match="no such column"):
        run_local(4, one)
    assert sorted(woken) == [rank for rank in range(4) if rank != culprit]
    assert {str(error) for error in woken.values()} == {f"rank {culprit} failed: LookupError: no such column"}


def test_a_rank_that_ends_early_is_an_error_of_those_who_wait():
    def one(exchange):
        if exchange.rank != 1:
            exchange.exchange([b""] * 3)

    with pytest.raises(PeerFailed, match="rank 1 failed: it ended while others wait"):
        run_local(3, one)


def test_one_rank_runs_in_the_calling_thread():
    assert run_local(1, lambda exchange: threading.current_thread()) == [threading.current_thread()]


def test_wrong_parts_are_refused():
    alone = local_group(1)[0]
    with pytest.raises(ValueError, match="2 parts for 1 ranks"):
        alone.exchange([b"", b""])
    with pytest.raises(ValueError, match="not contiguous"):
        alone.exchange([np.zeros((4, 4))[:, 1]])
    with pytest.raises(ValueError, match="at least one rank"):
        local_group(0)


def test_errors_survive_a_pickle():
    import pickle

    lost = pickle.loads(pickle.dumps(PeerLost(2, "tcp://a:1", "silent")))
    assert (lost.rank, lost.address, str(lost)) == (2, "tcp://a:1", "rank 2 at tcp://a:1 is lost: silent")
    failed = pickle.loads(pickle.dumps(PeerFailed(1, "oops")))
    assert (failed.rank, str(failed)) == (1, "rank 1 failed: oops")
