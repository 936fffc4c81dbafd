"""Workers that are lost, come or pause: the others keep their rows, and the file is that of a plain fit."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
import time
from collections import Counter
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("distributed", reason='Dask is not installed: pip install "polyleaf[dask]"')

import psutil
from distributed import Client, LocalCluster, get_worker
from distributed.core import Status
from faulty_fits import AT, Fault, fitted, killed, pids_of, waited_for
from rows import N, X, Y, array

from polyleaf import PolyleafRegressor
from polyleaf.dask.comms import worker_states
from polyleaf.dask.kept_rows import PauseAfterRound, ask_for_pause
from polyleaf.dask.launch import Run
from polyleaf.data import memory

pytestmark = [
    pytest.mark.cpu_only("shards are of the CPU"),
    pytest.mark.other_threads("Dask's workers are processes of their own"),
]

PARAMS = {"n_estimators": 6, "max_leaves": 5, "min_samples_leaf": 3, "subsample": 0.8, "random_state": 1}
SIZE = 10  # of a chunk


def counted(values, folder):
    """An array that notes each chunk that is computed, and in which process."""

    def seen(block, block_id=None):
        with open(folder / "computed", "a") as lines:
            lines.write(f"{block_id[0]} {os.getpid()}\n")
        return block

    values = np.asarray(values)
    return array(values, SIZE).map_blocks(seen, dtype=values.dtype, meta=values[:0])


def computed(folder):
    """How often each chunk was computed."""
    return Counter(int(line.split()[0]) for line in (folder / "computed").read_text().splitlines())


def assert_same_file(folder, callbacks, params=PARAMS, **deadlines):
    evals = [(array(X[:40], SIZE), array(Y[:40][::-1], 20))]
    local = fitted(params, callbacks, (counted(X, folder), array(Y, 30)), evals, **deadlines).to_local()
    plain = PolyleafRegressor(**params).fit(X, Y, eval_set=[(X[:40], Y[:40][::-1])])
    for name, model in (("local", local), ("plain", plain)):
        model.set_params(callbacks=None, eval_metric=None).save_model(folder / name)
    assert (folder / "local").read_bytes() == (folder / "plain").read_bytes()
    assert local.evals_result_ == plain.evals_result_


def test_only_what_was_lost_is_computed_again(cluster, tmp_path):
    cluster.grow_to(3)
    assert_same_file(tmp_path, [Fault(cluster, killed, False)])
    times = computed(tmp_path)
    assert sorted(times) == list(range(N // SIZE))
    # A third of the rows, more or less.
    assert 0 < sum(times.values()) - len(times) <= len(times) / 2, times


class Heard(logging.Handler):
    """Sets an event when a logger of the package says something that begins with these words."""

    def __init__(self, words):
        super().__init__(logging.INFO)
        self.words, self.event, self.lines = words, threading.Event(), []

    def emit(self, record):
        self.lines.append(record.getMessage())
        if self.words in self.lines[-1]:
            self.event.set()

    def slow_down(self, state):
        """A callback: rounds take their time until then."""
        if not self.event.is_set():
            time.sleep(0.7)

    def __enter__(self):
        logger = logging.getLogger("polyleaf.dask.holdings")
        self._level = logger.level
        logger.setLevel(logging.INFO)
        logger.addHandler(self)
        return self

    def __exit__(self, *error):
        logger = logging.getLogger("polyleaf.dask.holdings")
        logger.setLevel(self._level)
        logger.removeHandler(self)


def test_a_worker_that_comes_takes_rows_after_the_round(cluster, tmp_path):
    before = set(cluster.grow_to(2))
    cluster.client.retire_workers(sorted(set(cluster.client.nthreads()) - before))
    waited_for(lambda: set(cluster.client.nthreads()) == before)
    fault = Fault(cluster, lambda address, pid: cluster.grow_to(3), True)
    with Heard("will take rows") as heard:
        assert_same_file(tmp_path, [fault, heard.slow_down], PARAMS | {"n_estimators": 30})
        assert heard.event.is_set()
    again = [line for line in heard.lines if "partitions of X are computed" in line]
    assert len(again) == 1
    moved = int(again[0].split()[0])
    assert N // SIZE / 4 <= moved <= N // SIZE / 2  # a third of the rows
    assert sum(computed(tmp_path).values()) == N // SIZE + moved
    assert fault.rounds == list(range(30))
    assert cluster.left_behind(list(cluster.client.nthreads())) == {}


class SilentNewcomer:
    """A callback: a worker comes and is stopped at once; some rounds later it goes on."""

    def __init__(self, cluster, heard):
        self.cluster, self.heard = cluster, heard
        self.pid, self.late, self.rounds = None, False, []
        self.timer = threading.Timer(60, self.give_up)

    def after_round(self, state):
        self.rounds.append(state.round)
        if state.round == 0:
            before = set(self.cluster.client.nthreads())
            new = set(self.cluster.grow_to(len(before) + 1)) - before
            self.pid = self.cluster.pid(*new)
            os.kill(self.pid, signal.SIGSTOP)
            self.timer.start()
        if state.round == 4:
            os.kill(self.pid, signal.SIGCONT)
        self.heard.slow_down(state)

    def after_training(self, state):
        self.timer.cancel()

    def give_up(self):
        self.late = True
        os.kill(self.pid, signal.SIGCONT)


def test_rounds_do_not_wait_for_a_worker_that_comes_and_is_silent(cluster, tmp_path):
    """It takes rows once it answers."""
    before = set(cluster.grow_to(2))
    cluster.client.retire_workers(sorted(set(cluster.client.nthreads()) - before))
    waited_for(lambda: set(cluster.client.nthreads()) == before)
    with Heard("will take rows") as heard:
        newcomer = SilentNewcomer(cluster, heard)
        assert_same_file(tmp_path, [newcomer], PARAMS | {"n_estimators": 30}, silence=200)
        assert not newcomer.late  # the client was still waiting for it
        assert heard.event.is_set()
    assert newcomer.rounds == list(range(30))
    assert cluster.left_behind(list(cluster.client.nthreads())) == {}


def pauses(rank, path):
    """Wait until it is asked for, then return whether a round is followed by a pause."""
    waited_for(path.exists)
    return PauseAfterRound(rank.kept, rank.epoch).after_round(SimpleNamespace(n_done=1, n_rounds=3))


def test_a_pause_that_is_asked_for_before_the_first_rank_begins(cluster, tmp_path):
    """It ends that launch after a round, and no other one."""
    address = cluster.grow_to(1)[0]
    path = tmp_path / "asked"
    with Run(cluster.client) as run:

        def ask(states):
            if not path.exists():
                assert run.ask([address], partial(ask_for_pause, epoch=run.epoch)) == {address: True}
                path.write_text("")

        assert run.launch(pauses, {address: path}, look=ask)
        assert not run.launch(pauses, {address: path})


class PausesWhenRead:
    """A metric; the worker with the lowest pid is paused when it reads it, once."""

    __name__ = "none"

    def __init__(self, folder, pids):
        self.folder, self.pids = folder, sorted(pids)

    def __setstate__(self, state):
        self.__dict__.update(state)
        path = self.folder / "paused"
        if os.getpid() == self.pids[0] and not path.exists():
            path.write_text("")
            worker = get_worker()
            worker.loop.add_callback(setattr, worker, "status", Status.paused)

    def __call__(self, y, prediction):
        return 0.0


def test_a_worker_that_is_paused_before_it_begins_is_not_waited_for(cluster, tmp_path):
    """Dask starts no task on it: others get its rows, and it keeps none."""
    cluster.grow_to(3)
    addresses = {pid: address for address, pid in pids_of(cluster).items()}
    paused = addresses[min(addresses)]
    try:
        metric = PausesWhenRead(tmp_path, addresses)
        assert_same_file(tmp_path, None, PARAMS | {"eval_metric": metric}, start=4)
        assert (tmp_path / "paused").exists()
        assert worker_states(cluster.client)[paused].status == "paused"
        assert cluster.left_behind(list(addresses.values())) == {}
    finally:
        cluster.client.run(resume, workers=[paused])
    waited_for(lambda: worker_states(cluster.client)[paused].status == "running")


def resume(dask_worker):
    dask_worker.status = Status.running


async def load(share, dask_worker):
    """Have so much in memory that Dask pauses the worker, which answers others meanwhile."""
    limit = dask_worker.memory_manager.memory_limit
    missing = int(share * limit) - psutil.Process().memory_info().rss
    dask_worker.ballast = []
    for size in [1 << 24] * (missing >> 24):
        dask_worker.ballast.append(np.ones(size, dtype=np.uint8))
        await asyncio.sleep(0)


def unload(dask_worker):
    del dask_worker.ballast


class Ballast:
    """A callback: after a round a worker is paused for want of memory, until the end."""

    def __init__(self, client, share):
        self.client, self.share, self.paused = client, share, None

    def after_round(self, state):
        if state.round == AT:
            self.paused = min(self.client.nthreads())
            self.client.run(load, self.share, workers=[self.paused])
            waited_for(lambda: worker_states(self.client)[self.paused].status == "paused")

    def after_training(self, state):
        self.client.run(unload, workers=[self.paused])


@pytest.fixture(scope="module")
def with_nannies():
    """Workers with a memory limit, which are restarted when they die."""
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit="900 MiB",
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as local,
        Client(local, set_as_default=False) as client,
        client.as_current(),
    ):
        yield client


def test_a_memory_limit_pauses_a_worker(with_nannies, tmp_path):
    """What it does goes on: nothing is lost, and nothing is computed again."""
    ballast = Ballast(with_nannies, 0.87)
    assert_same_file(tmp_path, [ballast])
    assert ballast.paused is not None
    assert set(computed(tmp_path).values()) == {1}
    waited_for(lambda: {one.status for one in worker_states(with_nannies).values()} == {"running"})


def free_and_used(rank, shard):
    """Return, of all ranks: what can be had here, of the machine, and what the process has."""
    with memory.within(memory.MemoryShare()):
        machine = memory.available()
    text = f"{memory.available()} {machine} {memory._used()}"
    return [bytes(one).decode() for one in rank.exchange.exchange([text.encode()] * rank.exchange.size)]


def test_what_can_be_had_is_shared_with_workers_on_the_machine(cluster):
    addresses = cluster.grow_to(3)
    with Run(cluster.client) as run:
        for line in run.launch(free_and_used, dict.fromkeys(addresses)):
            free, machine, _ = map(int, line.split())
            assert 0 < free < 0.4 * machine


def test_what_can_be_had_stays_below_where_dask_pauses(with_nannies):
    with Run(with_nannies) as run:
        for line in run.launch(free_and_used, dict.fromkeys(with_nannies.nthreads())):
            free, _, used = map(int, line.split())
            assert used > 1 << 24
            assert free + used < 0.9 * (900 << 20)


def test_a_worker_that_its_nanny_restarts(with_nannies, tmp_path):
    pids = with_nannies.run(os.getpid)
    fault = Fault(SimpleNamespace(client=with_nannies, pid=pids.get), killed, True)
    assert_same_file(tmp_path, [fault])
    waited_for(lambda: len(with_nannies.nthreads()) == 2)
    assert fault.victim[1] not in with_nannies.run(os.getpid).values()
