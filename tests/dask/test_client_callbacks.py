"""Callbacks of a fit on a cluster are called by the client, as those of a plain fit are, and see the same."""

from __future__ import annotations

import copy
import logging
import os
import signal
import threading
import time

import numpy as np
import pytest

pytest.importorskip("distributed", reason='Dask is not installed: pip install "polyleaf[dask]"')

from distributed import Client
from rows import X, Y, array, watched

import dask
from cluster import Cluster
from polyleaf import PolyleafRegressor, load_model
from polyleaf.callbacks import (
    Checkpoint,
    EarlyStopping,
    EvaluationLog,
    LearningRateSchedule,
    ProgressBar,
    TimeLimit,
)
from polyleaf.dask import DaskPolyleafRegressor
from polyleaf.dask.rounds import ClientRounds
from polyleaf.estimators.fit import Fit

pytestmark = [
    pytest.mark.cpu_only("shards are of the CPU"),
    pytest.mark.other_threads("Dask's workers are processes of their own"),
]

COMMON = {"n_estimators": 6, "max_leaves": 5, "min_samples_leaf": 3, "learning_rate": 0.9}
UNSEEN = slice(0, 50)
OTHERS = Y[::-1]  # targets of other rows: more rounds make them worse soon


def trained(on_cluster, evaluated=True, **params):
    """A fit on the cluster, or a plain one."""
    if on_cluster:
        evals = [(array(X[UNSEEN], 20), array(OTHERS[UNSEEN], 50))] if evaluated else None
        return DaskPolyleafRegressor(**COMMON | params).fit(array(X, 40), array(Y, 30), eval_set=evals)
    evals = [(X[UNSEEN], OTHERS[UNSEEN])] if evaluated else None
    return PolyleafRegressor(**COMMON | params).fit(X, Y, eval_set=evals)


def assert_same_file(one, other, folder):
    for name, model in (("one", one.to_local()), ("other", other)):
        model.set_params(callbacks=None).save_model(folder / name)
    assert (folder / "one").read_bytes() == (folder / "other").read_bytes()


class Diary:
    """Notes every call and what the state says in it; no pickle can hold it."""

    def __init__(self, ends_after=None):
        self.lines, self.ends_after = [], ends_after
        self.lock = threading.Lock()

    def note(self, method, state):
        assert threading.current_thread() is threading.main_thread()
        seen = (state.round, state.n_done, state.n_rounds, state.learning_rate, state.best_iteration)
        trees = [] if method == "before_training" else state.forest().values.tolist()
        self.lines.append((method, *seen, copy.deepcopy(state.evals_result), state.latest(), trees))
        assert state.greater_is_better == {"rmse": False}

    def before_training(self, state):
        self.note("before_training", state)

    def before_round(self, state):
        self.note("before_round", state)
        state.learning_rate = 0.5 / (state.round + 1)

    def after_round(self, state):
        self.note("after_round", state)
        return state.round == self.ends_after

    def after_training(self, state):
        self.note("after_training", state)


@pytest.mark.parametrize("params", [{}, {"ends_after": 3}, {"early_stopping_rounds": 1}], ids=str)
def test_a_callback_sees_what_it_sees_in_a_plain_fit(cluster, tmp_path, params):
    early = params.get("early_stopping_rounds")
    diaries = [Diary(params.get("ends_after")) for _ in range(2)]
    models = [
        trained(on_cluster, callbacks=[diary], early_stopping_rounds=early)
        for on_cluster, diary in zip((True, False), diaries, strict=True)
    ]
    assert diaries[0].lines == diaries[1].lines
    assert (models[0].n_estimators_ < 6) == bool(params)
    assert models[0].best_iteration_ == models[1].best_iteration_
    assert_same_file(*models, tmp_path)


BUILT_IN = {
    "EarlyStopping": lambda: EarlyStopping(2, metric="rmse", data="validation_0"),
    "LearningRateSchedule": lambda: LearningRateSchedule(lambda number: 0.5 / (number + 1)),
    "TimeLimit": lambda: TimeLimit(1e-6),
    "ProgressBar": ProgressBar,
    "EvaluationLog": lambda: EvaluationLog(2),
    "a function": lambda: lambda state: state.n_done == 2,
}


@pytest.mark.parametrize("name", BUILT_IN)
def test_callbacks_there_are(cluster, tmp_path, name):
    models = [trained(on_cluster, callbacks=[BUILT_IN[name]()]) for on_cluster in (True, False)]
    assert models[0].evals_result_ == models[1].evals_result_
    assert_same_file(*models, tmp_path)


@pytest.mark.parametrize("evaluated", [True, False], ids=["evaluation set", "training rows"])
def test_verbose_shows_what_a_plain_fit_shows(cluster, capsys, caplog, evaluated):
    caplog.set_level(logging.INFO, logger="polyleaf")
    shown = []
    for on_cluster in (True, False):
        caplog.clear()
        trained(on_cluster, evaluated, verbose=2)
        lines = [record.getMessage() for record in caplog.records if record.name == "polyleaf"]
        text = capsys.readouterr().err
        assert all(line in text for line in lines[:-1])
        assert "6/6" in text
        shown.append(lines)
    assert shown[0] == shown[1]
    assert len(shown[0]) == 4
    assert "rmse=" in shown[0][0]


def test_rounds_are_logged_at_the_client(cluster, caplog):
    caplog.set_level(logging.INFO, logger="polyleaf.dask.rounds")
    trained(True)
    lines = [record.getMessage() for record in caplog.records if record.name == "polyleaf.dask.rounds"]
    assert [line.partition(":")[0] for line in lines[:-1]] == [f"round {n} of 6" for n in range(1, 7)]
    assert lines[-1].startswith("6 rounds in ")
    sent = [int(line.rpartition("; ")[2].partition(" ")[0]) for line in lines]
    assert min(sent) > 0
    assert sent[-1] >= sum(sent[:-1])


def test_what_is_logged_of_a_training_that_fails(cluster, caplog):
    """All rounds done, also that whose callback fails; nothing of a training that does not begin."""
    caplog.set_level(logging.INFO, logger="polyleaf.dask.rounds")
    with pytest.raises(ValueError, match="infinity"):
        DaskPolyleafRegressor(**COMMON).fit(array(np.full_like(X, np.inf), 40), array(Y, 40))
    assert not [record for record in caplog.records if record.name == "polyleaf.dask.rounds"]

    def fails(state):
        raise LookupError("no such thing")

    with pytest.raises(LookupError):
        DaskPolyleafRegressor(**COMMON, callbacks=[fails]).fit(array(X, 40), array(Y, 40))
    first, last = (one.getMessage() for one in caplog.records if one.name == "polyleaf.dask.rounds")
    assert first.startswith("round 1 of 6: ")
    assert last.startswith("1 round in ")
    once, in_all = (int(line.rpartition("; ")[2].partition(" ")[0]) for line in (first, last))
    assert 0 < once <= in_all


@pytest.mark.parametrize(
    ("callbacks", "waits"),
    [
        ([], False),
        ([EarlyStopping(3), ProgressBar(), EvaluationLog()], False),
        ([ProgressBar(), TimeLimit(60)], True),
        ([LearningRateSchedule([0.1])], True),
        ([lambda state: None], True),
    ],
    ids=["none", "early stopping and a bar", "TimeLimit", "LearningRateSchedule", "own"],
)
def test_rounds_wait_for_callbacks_that_may_change_them_alone(callbacks, waits):
    assert ClientRounds("regressor", {}, Fit(callbacks, None), None).waits is waits


class Breaks:
    """Raises in one of its methods."""

    def __init__(self, where, error):
        self.where, self.error, self.calls = where, error, []

    def __getattr__(self, name):
        if name not in ("before_training", "before_round", "after_round", "after_training"):
            raise AttributeError(name)

        def call(state):
            self.calls.append(name)
            if name == self.where and state.n_done in (0, 3, 6):
                raise self.error

        return call


@pytest.mark.parametrize("error", [KeyError("gone"), KeyboardInterrupt()], ids=["KeyError", "Ctrl-C"])
@pytest.mark.parametrize("where", ["before_round", "after_round", "after_training"])
def test_after_an_error_the_rounds_done_are_kept(cluster, where, error):
    found = []
    for kind, given in (
        (DaskPolyleafRegressor, (array(X, 40), array(Y, 30))),
        (PolyleafRegressor, (X, Y)),
    ):
        breaks = Breaks(where, error)
        model = kind(**COMMON, callbacks=[lambda state: None, breaks])
        with pytest.raises(type(error)) as raised:
            model.fit(*given)
        assert raised.value is error
        found.append((model.n_estimators_, model._forest.values.tolist(), breaks.calls))
    assert found[0] == found[1]
    assert cluster.left_behind(list(cluster.client.nthreads())) == {}


def test_an_error_before_the_training_leaves_the_estimator_as_it_was(cluster):
    other, breaks = Breaks("nowhere", None), Breaks("before_training", LookupError("no"))
    model = DaskPolyleafRegressor(**COMMON, callbacks=[other, breaks])
    with pytest.raises(LookupError, match="no"):
        model.fit(array(X, 40), array(Y, 30))
    assert other.calls == ["before_training", "after_training"]
    assert not hasattr(model, "n_features_in_")
    assert cluster.left_behind(list(cluster.client.nthreads())) == {}


def test_what_is_no_callback_is_refused_before_anything_is_computed(cluster, tmp_path):
    with pytest.raises((TypeError, ValueError), match="callbacks"):
        DaskPolyleafRegressor(**COMMON, callbacks=[3]).fit(watched(X, tmp_path), array(Y, 30))
    assert not list(tmp_path.iterdir())


def test_a_lost_scheduler_leaves_a_checkpoint_of_all_rounds(tmp_path):
    path = tmp_path / "checkpoint"

    def fall(state):
        if state.round == 3:
            cluster.lose_scheduler()

    model = DaskPolyleafRegressor(**COMMON, callbacks=[fall, Checkpoint(path, every=3)])
    with dask.config.set({"distributed.comm.timeouts.connect": "3s"}):  # so long a client tries again
        cluster = Cluster(1)
        try:
            with pytest.raises(ConnectionError, match=r"scheduler at tcp://.* was lost after 4 rounds"):
                model.fit(array(X, 40), array(Y, 30), client=cluster.client)
        finally:
            cluster.close()
    assert not hasattr(model, "n_features_in_")
    assert load_model(path).n_estimators_ == 4
    resumed = PolyleafRegressor(**COMMON).fit(X, Y, resume=path)
    np.testing.assert_array_equal(resumed.predict(X), PolyleafRegressor(**COMMON).fit(X, Y).predict(X))


def test_a_client_that_is_closed_meanwhile_ends_the_fit():
    """It is not the default one of this process, and there it would wait for ever."""
    cluster = Cluster(1)  # of its own: what a closed client leaves on workers takes a while to expire
    other = Client(cluster.client.scheduler.address, set_as_default=False)

    def close(state):
        if state.round == 1:
            threading.Thread(target=other.close).start()

    model = DaskPolyleafRegressor(**COMMON | {"n_estimators": 10_000}, callbacks=[close])
    try:
        with pytest.raises(ConnectionError, match="was lost after"):
            model.fit(array(X, 40), array(Y, 30), client=other)
    finally:
        cluster.close()


def test_rounds_that_no_worker_knows_any_more_come_from_the_client(tmp_path):
    """All workers die at once, and others come."""
    cluster, seen = Cluster(1), []

    def fall(state):
        seen.append(state.round)
        if seen == [0, 1, 2]:
            (address,) = cluster.client.nthreads()
            os.kill(cluster.pid(address), signal.SIGKILL)
            until = time.monotonic() + 60
            while cluster.client.nthreads() and time.monotonic() < until:
                time.sleep(0.05)
            cluster.grow_to(1)

    try:
        rate = LearningRateSchedule(lambda number: 0.5 / (number + 1))
        model = DaskPolyleafRegressor(**COMMON, callbacks=[fall, rate])
        model.fit(array(X, 40), array(Y, 30), client=cluster.client)
    finally:
        cluster.close()
    assert seen == list(range(6))
    assert_same_file(model, PolyleafRegressor(**COMMON, callbacks=[rate]).fit(X, Y), tmp_path)
