"""Workers that are lost, come or pause: the others keep their rows, and the file is that of a plain fit."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
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
        assert_same_file(tmp_path, [fault, lambda state: time.sleep(0.3)], PARAMS | {"n_estimators": 9})
        assert heard.event.is_set()
    again = [line for line in heard.lines if "partitions of X are computed" in line]
    assert len(again) == 1
    moved = int(again[0].split()[0])
    assert N // SIZE / 4 <= moved <= N // SIZE / 2  # a third of the rows
    assert sum(computed(tmp_path).values()) == N // SIZE + moved
    assert fault.rounds == list(range(9))
    assert cluster.left_behind(list(cluster.client.nthreads())) == {}


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


def load(share, dask_worker):
    """Have so much in memory that Dask pauses the worker."""
    limit = dask_worker.memory_manager.memory_limit
    own = psutil.Process().memory_info().rss
    dask_worker.ballast = np.ones(int(share * limit) - own, dtype=np.uint8)


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


def test_a_worker_that_its_nanny_restarts(with_nannies, tmp_path):
    pids = with_nannies.run(os.getpid)
    fault = Fault(SimpleNamespace(client=with_nannies, pid=pids.get), killed, True)
    assert_same_file(tmp_path, [fault])
    waited_for(lambda: len(with_nannies.nthreads()) == 2)
    assert fault.victim[1] not in with_nannies.run(os.getpid).values()
