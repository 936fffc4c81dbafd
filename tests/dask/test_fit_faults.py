"""Workers that die, stop or leave in the middle of a fit: the file is that of a plain fit all the same."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal

import numpy as np
import pytest

pytest.importorskip("distributed", reason='Dask is not installed: pip install "polyleaf[dask]"')

import dask.array as da
from faulty_fits import AT, Fault, fitted, killed, pids_of, stopped, waited_for
from rows import TABLE, TARGETS, WEIGHT, N, X, Y, array, frame

import dask
from polyleaf import PolyleafRegressor
from polyleaf.callbacks import LearningRateSchedule
from polyleaf.dask.partitions import LostRows

pytestmark = [
    pytest.mark.cpu_only("shards are of the CPU"),
    pytest.mark.other_threads("Dask's workers are processes of their own"),
]

PARAMS = {
    "n_estimators": 6,
    "max_leaves": 5,
    "min_samples_leaf": 3,
    "categorical_features": ["town"],
    "subsample": 0.8,
    "random_state": 1,
}


def slower(number):
    return 0.5 / (number + 1)


def assert_same_file(cluster, folder, fault, params=PARAMS):
    """Compare the files of a fit with a fault and of a plain fit; callbacks see each round once."""
    rows = slice(0, 50)
    tables = (frame(TABLE, range(10, N, 10)), frame(TARGETS, [70]), array(WEIGHT, 50))
    others = TARGETS[::-1]  # targets of other rows: more rounds make them worse soon
    evals = [(frame(TABLE.iloc[rows], [20]), frame(others.iloc[rows], [20]))]
    schedule = LearningRateSchedule(slower)
    local = fitted(params, [schedule, fault], tables, evals).to_local()
    plain = PolyleafRegressor(**params, callbacks=[schedule]).fit(
        TABLE, TARGETS, WEIGHT, eval_set=[(TABLE.iloc[rows], others.iloc[rows])]
    )
    for name, model in (("local", local), ("plain", plain)):
        model.set_params(callbacks=None).save_model(folder / name)
    assert fault.victim is not None
    assert (folder / "local").read_bytes() == (folder / "plain").read_bytes()
    assert local.evals_result_ == plain.evals_result_
    assert local.best_iteration_ == plain.best_iteration_
    assert fault.rounds == list(
        range(len(plain.evals_result_["validation_0"]["rmse"]))
    )  # each once, in order
    return local


@pytest.mark.parametrize("own", [True, False], ids=["rank 0", "another"])
def test_a_worker_is_killed(cluster, tmp_path, own):
    cluster.grow_to(3)
    fault = Fault(cluster, killed, own)
    assert_same_file(cluster, tmp_path, fault)
    left = pids_of(cluster)
    assert fault.victim[1] not in left.values()
    assert cluster.left_behind(list(left)) == {}


def test_early_stopping_goes_on_as_if_nothing_had_happened(cluster, tmp_path):
    cluster.grow_to(2)
    fault = Fault(cluster, killed, True)
    params = PARAMS | {"n_estimators": 50, "early_stopping_rounds": 4}
    model = assert_same_file(cluster, tmp_path, fault, params)
    assert AT < model.n_estimators_ < 50


@pytest.mark.parametrize("own", [True, False], ids=["rank 0", "another"])
def test_a_worker_is_stopped(cluster, tmp_path, own):
    cluster.grow_to(3)
    fault = Fault(cluster, stopped, own)
    before = set(cluster.client.nthreads())
    try:
        assert_same_file(cluster, tmp_path, fault)
    finally:
        if fault.victim is not None:
            os.kill(fault.victim[1], signal.SIGCONT)
    # It wakes up and finds that the others went on without it.
    waited_for(lambda: cluster.left_behind(list(before & set(cluster.client.nthreads()))) == {})


@pytest.mark.parametrize("own", [True, False], ids=["rank 0", "another"])
def test_a_worker_is_retired(cluster, tmp_path, own):
    cluster.grow_to(3)
    fault = Fault(cluster, lambda address, pid: cluster.client.retire_workers([address]), own)
    assert_same_file(cluster, tmp_path, fault)
    assert fault.victim[0] not in cluster.client.nthreads()
    assert cluster.left_behind(list(cluster.client.nthreads())) == {}


class DiesWhenRead:
    """A metric; the first worker to read it dies of it, while rows are prepared."""

    __name__ = "none"

    def __init__(self, folder, pids):
        self.folder, self.pids = folder, sorted(pids)

    def __setstate__(self, state):
        self.__dict__.update(state)
        if os.getpid() in self.pids:
            with contextlib.suppress(FileExistsError):
                (self.folder / "dead").mkdir()
                os.kill(os.getpid(), signal.SIGKILL)

    def __call__(self, y, prediction):
        return 0.0


def test_a_worker_is_killed_while_rows_are_prepared(cluster, tmp_path):
    cluster.grow_to(3)
    metric = DiesWhenRead(tmp_path, pids_of(cluster).values())
    params = {"n_estimators": 2, "min_samples_leaf": 3}
    model = fitted(params | {"eval_metric": metric}, None, (array(X, 10), array(Y, 30)), None)
    model.to_local().set_params(eval_metric=None).save_model(tmp_path / "local")
    assert (tmp_path / "dead").exists()
    PolyleafRegressor(**params).fit(X, Y).save_model(tmp_path / "plain")
    assert (tmp_path / "local").read_bytes() == (tmp_path / "plain").read_bytes()


def at_random(n_rows):
    return np.random.default_rng(secrets.randbits(64)).normal(size=(n_rows, 3))


def test_a_partition_that_comes_back_different_is_named(cluster, tmp_path):
    cluster.grow_to(3)
    fault = Fault(cluster, killed, False)
    chunks = [da.from_delayed(dask.delayed(at_random, pure=False)(10), (10, 3), float) for _ in range(12)]
    params = {"n_estimators": 6, "min_samples_leaf": 3}
    with pytest.raises(Exception, match=r"partition \d+ of X"):
        fitted(params, [fault], (da.concatenate(chunks), array(Y, 10)), None)
    assert cluster.left_behind(list(cluster.client.nthreads())) == {}


def test_data_that_cannot_come_back_are_named(cluster, tmp_path):
    """What was scattered is lost with the worker that had it."""
    cluster.grow_to(3)
    client = cluster.client
    pids = pids_of(cluster)
    fault = Fault(cluster, killed, False)
    pieces = [
        client.scatter(X[low : low + 10], workers=[sorted(pids)[low // 10 % len(pids)]], hash=False)
        for low in range(0, N, 10)
    ]
    rows = da.concatenate([da.from_delayed(dask.delayed(piece), (10, 3), float) for piece in pieces])
    params = {"n_estimators": 6, "min_samples_leaf": 3}
    with pytest.raises(LostRows, match=r"partitions (\d+, )+\d+ of X: Dask cannot compute"):
        fitted(params, [fault], (rows, array(Y, 10)), None)
    assert cluster.left_behind(list(client.nthreads())) == {}
