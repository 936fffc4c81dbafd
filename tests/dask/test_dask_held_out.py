"""Rounds by rows that are held out of those of a cluster: the file is that of a plain fit, byte for byte."""

from __future__ import annotations

import logging

import numpy as np
import pytest

pytest.importorskip("distributed", reason='Dask is not installed: pip install "polyleaf[dask]"')

import pandas as pd
from faulty_fits import AT, Fault, fitted, killed, waited_for
from rows import CLASSES, GAPS, TABLE, WEIGHT, N, X, Y, array, frame
from test_kept_rows import Heard

from polyleaf import PolyleafClassifier, PolyleafRegressor
from polyleaf.callbacks import Checkpoint, EarlyStopping, LearningRateSchedule
from polyleaf.dask import DaskPolyleafClassifier, DaskPolyleafRegressor
from polyleaf.params.table import AUTO_FEW_ROWS

pytestmark = [
    pytest.mark.cpu_only("shards are of the CPU"),
    pytest.mark.other_threads("Dask's workers are processes of their own"),
]

# As many rows as one set is held out of, also without those of no weight.
MANY = AUTO_FEW_ROWS + 50
RNG = np.random.default_rng(2)
X_MANY = RNG.normal(size=(MANY, 3)).round(2)
Y_MANY = np.column_stack([X_MANY[:, 0] * X_MANY[:, 1], X_MANY[:, 2] ** 2]) + RNG.normal(size=(MANY, 2))
WEIGHT_MANY = np.where(np.arange(MANY) % 97 == 0, 0.0, RNG.choice([0.3, 1.0, 2.0], MANY))
COMMON = {"n_estimators": "auto", "max_leaves": 4, "min_samples_leaf": 3, "learning_rate": 0.5}
CAPPED = COMMON | {"n_estimators": 8, "early_stopping_rounds": 4}

# The kinds of estimators, parameters, tables of Dask and plain ones.
REGRESSORS = (DaskPolyleafRegressor, PolyleafRegressor)
CASES = {
    "few rows": (REGRESSORS, {}, (array(X, 40), array(Y, 30)), (X, Y)),
    "many rows": (REGRESSORS, {}, (array(X_MANY, 300), array(Y_MANY, 500)), (X_MANY, Y_MANY)),
    "no refit": (
        REGRESSORS,
        {"refit": False, "subsample": 0.8, "random_state": 3},
        (array(X_MANY, 300), array(Y_MANY, 500), array(WEIGHT_MANY, 700)),
        (X_MANY, Y_MANY, WEIGHT_MANY),
    ),
    "gaps and weights": (
        REGRESSORS,
        {"categorical_features": ["town"], "n_estimators": 10, "early_stopping_rounds": 5},
        (frame(TABLE, [20, 20, 65]), frame(GAPS, [70]), array(WEIGHT, 50)),
        (TABLE, GAPS, WEIGHT),
    ),
    "classes": (
        (DaskPolyleafClassifier, PolyleafClassifier),
        {"categorical_features": ["town"], "class_weight": "balanced", "validation_fraction": 0.5},
        (frame(TABLE, [20, 65]), frame(CLASSES, [70])),
        (TABLE, CLASSES),
    ),
}


def saved(model, path):
    model.set_params(callbacks=None).save_model(path)
    return path.read_bytes()


@pytest.mark.parametrize("case", CASES)
def test_the_file_is_that_of_a_plain_fit(cluster, tmp_path, case):
    (kind, plain_kind), params, given, plain = CASES[case]
    model = kind(**COMMON | params).fit(*given)
    other = plain_kind(**COMMON | params).fit(*plain)
    assert list(model.evals_result_) == ["held_out"]
    assert model.evals_result_ == other.evals_result_
    assert (model.n_estimators_, model.best_iteration_) == (other.n_estimators_, other.best_iteration_)
    assert saved(model.to_local(), tmp_path / "local") == saved(other, tmp_path / "plain")


def test_held_out_rows_choose_the_leaves_of_a_plain_fit(cluster, tmp_path):
    random = np.random.default_rng(3)
    rows = random.normal(size=(160, 16))
    y = rows[:, :6].sum(axis=1) + random.normal(size=160)
    params = {"n_estimators": 6, "early_stopping_rounds": 6, "learning_rate": 0.3, "max_depth": 4}
    model = DaskPolyleafRegressor(**params).fit(array(rows, 40), array(y, 30))
    other = PolyleafRegressor(**params).fit(rows, y)
    assert model.chosen_params_ == other.chosen_params_
    assert other.chosen_params_["min_samples_leaf"] == 20
    assert saved(model.to_local(), tmp_path / "local") == saved(other, tmp_path / "plain")


class FaultIn(Fault):
    """A fault in one of two trainings."""

    def __init__(self, cluster, how, own, training):
        super().__init__(cluster, how, own)
        self.training, self.begun, self.seen = training, -1, []

    def before_training(self, state):
        self.begun += 1

    def after_round(self, state):
        self.seen.append((self.begun, state.round, list(state.latest()), state.best_iteration))
        if self.begun == self.training:
            super().after_round(state)


def slower(number):
    return 0.5 / (number + 1)


def assert_same_file(folder, fault, tables, plain_rows, params):
    """Compare the files of a fit with a fault and of a plain fit; callbacks see each round once."""
    schedule = LearningRateSchedule(slower)
    local = fitted(params, [schedule, fault], tables, None).to_local()
    other = FaultIn(None, None, None, None)  # of neither training
    plain = PolyleafRegressor(**params, callbacks=[schedule, other]).fit(*plain_rows)
    assert local.evals_result_ == plain.evals_result_
    assert saved(local, folder / "local") == saved(plain, folder / "plain")
    seen = [one[:2] for one in fault.seen]
    assert seen == [one[:2] for one in other.seen]
    assert [one[3] for one in fault.seen] == [one[3] for one in other.seen]
    assert fault.victim is not None
    assert fault.begun == 1


@pytest.mark.parametrize("own", [True, False], ids=["rank 0", "another"])
@pytest.mark.parametrize("training", [0, 1], ids=["watched", "all rows"])
@pytest.mark.parametrize("n_rows", [N, MANY], ids=["in turn", "once"])
def test_a_worker_is_killed_in_either_training(cluster, tmp_path, own, training, n_rows):
    cluster.grow_to(3)
    fault = FaultIn(cluster, killed, own, training)
    plain = (X, Y, WEIGHT.to_numpy()) if n_rows == N else (X_MANY, Y_MANY, WEIGHT_MANY)
    tables = tuple(array(values, n_rows // 9) for values in plain)
    params = CAPPED | {"subsample": 0.8, "random_state": 1, "validation_fraction": 0.34}
    assert_same_file(tmp_path, fault, tables, plain, params)
    assert cluster.left_behind(list(cluster.client.nthreads())) == {}


@pytest.mark.parametrize("own", [True, False], ids=["rank 0", "another"])
def test_a_worker_is_killed_between_the_trainings(cluster, tmp_path, own):
    cluster.grow_to(3)

    class Between(FaultIn):
        def after_training(self, state):
            if self.victim is None:
                self.strike()

    fault = Between(cluster, killed, own, None)
    plain = X_MANY, Y_MANY
    assert_same_file(tmp_path, fault, tuple(array(one, 200) for one in plain), plain, CAPPED)
    assert cluster.left_behind(list(cluster.client.nthreads())) == {}


@pytest.mark.parametrize("training", [0, 1], ids=["watched", "all rows"])
def test_a_worker_that_comes_takes_rows_of_either_training(cluster, tmp_path, training):
    before = set(cluster.grow_to(2))
    cluster.client.retire_workers(sorted(set(cluster.client.nthreads()) - before))
    waited_for(lambda: set(cluster.client.nthreads()) == before)
    params = COMMON | {"n_estimators": 30, "early_stopping_rounds": 30, "max_leaves": 8}
    plain = X_MANY, X_MANY[:, :2] * 3  # many rounds make it better
    with Heard("will take rows") as heard:

        class Slow(FaultIn):
            def after_round(self, state):
                super().after_round(state)
                if self.victim is not None:
                    heard.slow_down(state)

        fault = Slow(cluster, lambda address, pid: cluster.grow_to(3), True, training)
        assert_same_file(tmp_path, fault, tuple(array(one, 200) for one in plain), plain, params)
        assert heard.event.is_set()
    assert cluster.left_behind(list(cluster.client.nthreads())) == {}


def test_workers_that_are_all_lost_are_told_what_held_out_rows_asked_for(cluster, tmp_path, caplog):
    """The client knows it: rows are not watched again."""
    cluster.grow_to(2)

    def killed_all(address, pid):
        for one in list(cluster.client.nthreads()):
            killed(one, cluster.pid(one))
        waited_for(lambda: not cluster.client.nthreads())
        cluster.grow_to(2)

    caplog.set_level(logging.INFO, logger="polyleaf.dask.rounds")
    fault = FaultIn(cluster, killed_all, True, 1)
    plain = X_MANY, Y_MANY
    assert_same_file(tmp_path, fault, tuple(array(one, 300) for one in plain), plain, CAPPED)
    assert AT in fault.rounds


class Stop(Exception):
    pass


class StopIn(FaultIn):
    """Ends one of two trainings by an error."""

    def __init__(self, training):
        super().__init__(None, None, None, training)

    def after_round(self, state):
        if self.begun == self.training and state.n_done == 3:
            raise Stop


@pytest.mark.parametrize(("n_rows", "training"), [(MANY, 0), (MANY, 1), (N, 1)])
def test_checkpoints_are_those_of_a_plain_fit_and_either_goes_on(cluster, tmp_path, n_rows, training):
    """While each row is held out in turn, none is written."""
    plain = X_MANY[:n_rows], Y_MANY[:n_rows], WEIGHT_MANY[:n_rows]
    given = tuple(array(one, n_rows // 7) for one in plain)
    files, left = [], []
    for kind, rows in ((DaskPolyleafRegressor, given), (PolyleafRegressor, plain)):
        path = tmp_path / kind.__name__
        model = kind(**CAPPED, callbacks=[Checkpoint(path, every=2), StopIn(training)])
        with pytest.raises(Stop):
            model.fit(*rows)
        files.append(path.read_bytes())
        left.append((model.n_estimators_, model.evals_result_))
    assert files[0] == files[1]
    assert left[0] == left[1]
    on_cluster = DaskPolyleafRegressor(**CAPPED).fit(*given, resume=path)
    resumed = PolyleafRegressor(**CAPPED).fit(*plain, resume=path)
    assert on_cluster.evals_result_ == resumed.evals_result_
    assert saved(on_cluster.to_local(), tmp_path / "a") == saved(resumed, tmp_path / "b")
    with pytest.raises(ValueError, match="held out rows to stop by, and this one does not"):
        DaskPolyleafRegressor(**CAPPED | {"early_stopping_rounds": None}).fit(*given, resume=path)


@pytest.mark.parametrize("where", ["before_training", "after_training"])
@pytest.mark.parametrize("training", [0, 1], ids=["watched", "all rows"])
def test_errors_of_callbacks_around_a_training(cluster, where, training):
    """They leave behind what a plain fit leaves behind."""

    class Fails(FaultIn):
        def before_training(self, state):
            super().before_training(state)
            self.fail("before_training")

        def after_training(self, state):
            self.fail("after_training")

        def fail(self, here):
            if here == where and self.begun == training:
                raise Stop

        def after_round(self, state):
            pass

    left = []
    for kind, rows in ((DaskPolyleafRegressor, (array(X, 40), array(Y, 30))), (PolyleafRegressor, (X, Y))):
        model = kind(**CAPPED, callbacks=[Fails(None, None, None, None)])
        with pytest.raises(Stop):
            model.fit(*rows)
        left.append([getattr(model, name, None) for name in ("n_estimators_", "evals_result_")])
    assert left[0] == left[1]


class PatientStopping(EarlyStopping):
    """Not the one that workers know: it is called at the client."""


def test_a_callback_of_the_user_says_when_to_stop(cluster, tmp_path):
    params = COMMON | {"n_estimators": 20}
    models = [
        DaskPolyleafRegressor(**params, callbacks=[PatientStopping(3)]).fit(array(X, 40), array(Y, 30)),
        PolyleafRegressor(**params, callbacks=[PatientStopping(3)]).fit(X, Y),
    ]
    assert models[0].evals_result_ == models[1].evals_result_
    assert len(models[0].evals_result_["held_out"]["rmse"]) < 20
    assert saved(models[0].to_local(), tmp_path / "a") == saved(models[1], tmp_path / "b")


def test_rows_that_cannot_be_held_out_are_warned_of(cluster, tmp_path):
    """Ten equal rows and more are told apart: so few of each kind cannot be."""
    same = pd.DataFrame({"a": np.ones(9)})
    y = pd.DataFrame(np.ones((9, 2)), columns=["one", "two"])
    with pytest.warns(UserWarning, match="no rows can be held out") as shown:
        model = DaskPolyleafRegressor(n_estimators="auto").fit(frame(same, [4]), frame(y, [2]))
    assert [one.filename for one in shown if "held out" in str(one.message)] == [__file__]
    with pytest.warns(UserWarning, match="no rows can be held out"):
        plain = PolyleafRegressor(n_estimators="auto").fit(same, y)
    assert saved(model.to_local(), tmp_path / "a") == saved(plain, tmp_path / "b")
    with pytest.raises(ValueError, match="no rows can be held out to stop early by"):
        DaskPolyleafRegressor(early_stopping_rounds=3).fit(frame(same, [4]), frame(y, [2]))


@pytest.mark.parametrize("verbose", [1, 2])
def test_verbose_shows_what_a_plain_fit_shows(cluster, caplog, capsys, verbose):
    caplog.set_level(logging.INFO, logger="polyleaf")
    shown = []
    for kind, rows in ((DaskPolyleafRegressor, (array(X, 40), array(Y, 30))), (PolyleafRegressor, (X, Y))):
        caplog.clear()
        kind(**CAPPED, verbose=verbose).fit(*rows)
        shown.append([record.getMessage() for record in caplog.records if record.name == "polyleaf"])
        capsys.readouterr()
    assert shown[0] == shown[1]
