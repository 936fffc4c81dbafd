"""The same function on every worker: what is sent arrives, errors reach all, and nothing is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("distributed", reason='Dask is not installed: pip install "polyleaf[dask]"')

from distributed import CancelledError, Client, Future, LocalCluster, get_worker

from cluster import QUICK
from polyleaf.dask.comms import at_client, is_connected, threads_of_workers, worker_states
from polyleaf.dask.launch import Run, _most_telling, launch
from polyleaf.dask.messages import Deadlines
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.exchange import PeerFailed, PeerLost

pytestmark = [
    pytest.mark.cpu_only("messages between workers"),
    pytest.mark.python_only("messages between workers"),
]


def shared_out(addresses, value=None):
    return dict.fromkeys(addresses, value)


def all_parts(seed, turn, size):
    """What everybody sends to everybody, from nothing to a megabyte."""
    random = np.random.default_rng([seed, turn])
    lengths = random.choice([0, 1, 100, 4095, 4096, 70_000, 1_000_000], (size, size))
    return [[random.bytes(int(length)) for length in row] for row in lengths]


def check_exchanges(rank, seed):
    exchange = rank.exchange
    for turn in range(6):
        parts = all_parts(seed, turn, exchange.size)
        received = exchange.exchange(parts[exchange.rank])
        assert [bytes(one) for one in received] == [row[exchange.rank] for row in parts]
    return exchange.rank, exchange.size


@pytest.mark.parametrize("n_workers", [1, 2, 3, 4])
def test_every_rank_gets_what_was_sent_to_it(cluster, n_workers):
    addresses = cluster.grow_to(n_workers)
    assert launch(cluster.client, check_exchanges, shared_out(addresses, n_workers), QUICK) == (0, n_workers)
    assert cluster.left_behind(addresses) == {}


def add_up(rank, shard):
    peers = Collectives(rank.exchange)
    total = np.full(100_000, shard, dtype=np.int64)
    peers.add(total)
    return int(total.min()), int(total.max()), rank.n_threads


def test_shards_go_to_their_workers_and_ranks_are_in_their_order(cluster):
    addresses = cluster.grow_to(3)
    client = cluster.client
    shards = {address: 10**place for place, address in enumerate(reversed(addresses))}
    assert launch(client, add_up, shards, QUICK) == (111, 111, 1)

    def where(rank, shard):
        own = f"{rank.exchange.rank} {get_worker().address} {shard['here'][0]}"
        return [bytes(one).decode() for one in rank.exchange.exchange([own.encode()] * rank.exchange.size)]

    scattered = {
        address: client.scatter(place, workers=[address], hash=False)
        for place, address in enumerate(addresses)
    }
    shards = {address: {"here": [future]} for address, future in scattered.items()}
    assert launch(client, where, shards, QUICK) == [
        f"{place} {address} {place}" for place, address in enumerate(addresses)
    ]


def raise_in_the_third(rank, culprit):
    for turn in range(5):
        if turn == 2 and rank.exchange.rank == culprit:
            raise LookupError("no such column")
        rank.exchange.exchange([b"x" * 10_000] * rank.exchange.size)


@pytest.mark.parametrize("culprit", [0, 2])
def test_an_error_of_a_rank_ends_the_run(cluster, culprit):
    addresses = cluster.grow_to(3)
    with pytest.raises(LookupError, match="no such column") as caught:
        launch(cluster.client, raise_in_the_third, shared_out(addresses, culprit), QUICK)
    worker = f"(raised by rank {culprit}, on the worker at {addresses[culprit]})"
    assert caught.value.__notes__ == [worker]
    assert cluster.left_behind(addresses) == {}


def without_memory(rank, shard):
    raise MemoryError(shard)


def fails_to_be_read():
    raise ImportError("no such library")


class OnlyAtHome:
    """What no worker can read."""

    def __reduce__(self):
        return fails_to_be_read, ()


def test_errors_keep_their_kind_and_name_the_worker(cluster):
    (address,) = cluster.grow_to(1)[:1]
    words = f"on the worker at {address}"
    with pytest.raises(MemoryError, match="too large") as caught:
        launch(cluster.client, without_memory, {address: "too large"}, QUICK)
    assert words in caught.value.__notes__[0]
    away = OnlyAtHome()
    with pytest.raises(ImportError, match="no such library") as unread:
        launch(cluster.client, lambda rank, shard: away, {address: None}, QUICK)
    assert words in unread.value.__notes__[0]


def note_the_error(rank, folder):
    try:
        raise_in_the_third(rank, 1)
    except PeerFailed as error:
        (folder / str(rank.exchange.rank)).write_text(str(error))
        raise


def test_the_error_of_the_others_names_the_rank(cluster, tmp_path):
    with pytest.raises(LookupError):
        launch(cluster.client, note_the_error, shared_out(cluster.grow_to(3), tmp_path), QUICK)
    texts = {one.name: one.read_text() for one in tmp_path.iterdir()}
    assert texts == dict.fromkeys("02", "rank 1 failed: LookupError: no such column")


def test_a_rank_that_ends_early_is_an_error_of_those_who_wait(cluster):
    def one(rank, shard):
        if rank.exchange.rank != 1:
            rank.exchange.exchange([b""] * rank.exchange.size)

    addresses = cluster.grow_to(3)
    with pytest.raises((PeerFailed, PeerLost), match=r"rank 1 .*ended") as caught:
        launch(cluster.client, one, shared_out(addresses), QUICK)
    assert addresses[1] in str(caught.value) + "".join(getattr(caught.value, "__notes__", []))


def test_two_runs_at_once_do_not_mix(cluster):
    addresses = cluster.grow_to(3)
    results = {}

    def one(seed):
        order = addresses if seed % 2 else addresses[::-1]
        results[seed] = launch(cluster.client, check_exchanges, shared_out(order, seed), QUICK)

    threads = [threading.Thread(target=one, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict.fromkeys(range(3), (0, 3))
    assert cluster.left_behind(addresses) == {}


def count_launches(rank, shard):
    rank.kept["launches"] = rank.kept.get("launches", 0) + 1
    received = rank.exchange.exchange([bytes([rank.kept["launches"]])] * rank.exchange.size)
    return [bytes(one)[0] for one in received]


def test_a_run_keeps_what_it_was_told_to_keep_until_it_ends(cluster):
    addresses = cluster.grow_to(2)
    with Run(cluster.client, QUICK) as run:
        assert run.launch(count_launches, shared_out(addresses)) == [1, 1]
        assert run.launch(count_launches, shared_out(addresses)) == [2, 2]
        assert set(cluster.left_behind(addresses)) == set(addresses)
    assert cluster.left_behind(addresses) == {}
    assert launch(cluster.client, count_launches, shared_out(addresses), QUICK) == [1, 1]


def test_what_is_kept_expires_when_nobody_comes_back(cluster):
    addresses = cluster.grow_to(2)
    run = Run(cluster.client, Deadlines(beat=0.25, silence=4.0, kept=2.0))
    run.launch(count_launches, shared_out(addresses))
    waited_for(lambda: cluster.left_behind(addresses) == {})


def exchange_until_stopped(rank, folder):
    (folder / str(rank.exchange.rank)).write_text("")
    until = time.monotonic() + 120
    try:
        while True:
            assert time.monotonic() < until, "nobody stops it"
            rank.exchange.exchange([b"x"] * rank.exchange.size)
            time.sleep(0.01)
    except Exception as error:
        (folder / f"ended {rank.exchange.rank}").write_text(type(error).__name__)
        raise


def waited_for(condition):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def begun(folder, n_ranks):
    waited_for(lambda: len(list(folder.glob("?"))) == n_ranks)


def test_ctrl_c_at_the_client_stops_all_ranks(cluster, tmp_path):
    addresses = cluster.grow_to(3)

    def press():
        begun(tmp_path, 3)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    with pytest.raises(KeyboardInterrupt):
        launch(cluster.client, exchange_until_stopped, shared_out(addresses, tmp_path), QUICK)
    assert len(list(tmp_path.glob("ended ?"))) == 3
    assert cluster.left_behind(addresses) == {}


@pytest.mark.parametrize("hear", [None, bytes])
def test_tasks_that_are_cancelled_stop(cluster, tmp_path, hear):
    addresses = cluster.grow_to(3)

    def cancel():
        begun(tmp_path, 3)
        client = cluster.client
        # Others come and go in the thread of the client's loop.
        mine = [Future(key, client) for key in list(client.futures) if str(key).startswith("polyleaf-rank")]
        client.cancel(mine, force=True)

    threading.Thread(target=cancel).start()
    with Run(cluster.client, QUICK) as run, pytest.raises(CancelledError, match="was cancelled"):
        run.launch(exchange_until_stopped, shared_out(addresses, tmp_path), hear)
    waited_for(lambda: len(list(tmp_path.glob("ended ?"))) == 3)
    assert cluster.left_behind(addresses) == {}


def test_a_client_that_is_gone_leaves_nothing_behind(cluster, tmp_path):
    addresses = cluster.grow_to(2)
    other = Client(cluster.client.scheduler.address, set_as_default=False)
    deadlines = Deadlines(beat=0.25, silence=4.0, kept=2.0)

    def one():
        with contextlib.suppress(Exception):  # whatever a client that was closed says
            launch(other, exchange_until_stopped, shared_out(addresses, tmp_path), deadlines)

    thread = threading.Thread(target=one)
    thread.start()
    begun(tmp_path, 2)
    other.close()
    waited_for(lambda: len(list(tmp_path.glob("ended ?"))) == 2)
    waited_for(lambda: cluster.left_behind(addresses) == {})
    thread.join(60)
    assert not thread.is_alive()


def test_who_waits_for_a_client_that_is_closed_hears_of_it(cluster):
    other = Client(cluster.client.scheduler.address, set_as_default=False)
    said = []
    waits = threading.Event()

    async def for_ever():
        waits.set()
        await asyncio.Event().wait()

    def one():
        try:
            at_client(other, for_ever)
        except OSError as error:
            said.append(str(error))

    thread = threading.Thread(target=one)
    thread.start()
    assert waits.wait(60)
    other.close()
    thread.join(60)
    assert said == ["the client was closed"]
    with pytest.raises(OSError, match="the client was closed"):
        at_client(other, for_ever)


@pytest.mark.parametrize("status", ["closing", "closed"])
def test_futures_that_a_closed_client_has_cancelled_say_that_it_was_closed(status):
    """While it closes, the scheduler may still answer: the cancelled futures are what tells."""
    future = SimpleNamespace(key="rank-0", status="cancelled", done=lambda: True, cancelled=lambda: True)
    with pytest.raises(OSError, match="the client was closed"):
        _most_telling(SimpleNamespace(status=status), [future], ["tcp://a"])
    with pytest.raises(CancelledError, match="rank-0 was cancelled"):
        raise _most_telling(SimpleNamespace(status="running"), [future], ["tcp://a"])


def test_workers_may_be_threads_of_one_process():
    with (
        LocalCluster(n_workers=3, threads_per_worker=1, processes=False, dashboard_address=":0") as local,
        Client(local) as client,
    ):
        addresses = list(client.nthreads())
        assert addresses[0].startswith("inproc:")
        assert launch(client, overwrite, shared_out(addresses), QUICK)
        assert launch(client, check_exchanges, shared_out(addresses, 5), QUICK) == (0, 3)


def overwrite(rank, shard):
    """Whether what arrived stays what it is when the sender goes on."""
    mine = np.full(10_000, rank.exchange.rank)
    received = rank.exchange.exchange([mine] * rank.exchange.size)
    others = [
        np.frombuffer(one, mine.dtype) for other, one in enumerate(received) if other != rank.exchange.rank
    ]
    mine[:] = -1
    rank.exchange.exchange([b""] * rank.exchange.size)
    return all((other >= 0).all() for other in others)


def test_what_was_sent_may_be_overwritten_at_once(cluster):
    assert launch(cluster.client, overwrite, shared_out(cluster.grow_to(3)), QUICK)


def test_a_client_that_has_given_up_says_so(cluster):
    """It has no scheduler then, not even one that is closed."""
    other = Client(cluster.client.scheduler.address, set_as_default=False)
    other.close()
    assert other.scheduler is None
    for question in (threads_of_workers, worker_states):
        with pytest.raises(OSError, match=r"was closed|given up its scheduler"):
            question(other)
    assert not is_connected(other)


def test_bad_calls_are_refused(cluster):
    with pytest.raises(ValueError, match="no worker holds data"):
        launch(cluster.client, add_up, {})
    with pytest.raises(PeerLost, match=r"rank 1 at tcp://127\.0\.0\.1:9 is lost: it is not ready"):
        launch(
            cluster.client,
            add_up,
            {cluster.grow_to(1)[0]: 1, "tcp://127.0.0.1:9": 2},
            Deadlines(beat=0.25, silence=1.0, start=1.0),
        )
    with pytest.raises(ValueError, match="two beats"):
        Deadlines(beat=1.0, silence=1.5)
    with pytest.raises(ValueError, match="beat"):
        Deadlines(beat=0.0)
