"""Rows on a cluster give the model file of a plain fit, byte for byte, and predictions when asked for."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("distributed", reason='Dask is not installed: pip install "polyleaf[dask]"')

import dask.dataframe as dd
from rows import CLASSES, GAPS, LABELS, TABLE, TARGETS, WEIGHT, N, X, Y, array, frame, watched

import dask
from cluster import Cluster
from polyleaf import PolyleafClassifier, PolyleafRegressor
from polyleaf.callbacks import LearningRateSchedule
from polyleaf.dask import DaskPolyleafClassifier, DaskPolyleafRegressor

pytestmark = [
    pytest.mark.cpu_only("shards are of the CPU"),
    pytest.mark.other_threads("Dask's workers are processes of their own"),
]

COMMON = {"n_estimators": 2, "max_leaves": 5, "min_samples_leaf": 3}
PLAIN = {DaskPolyleafRegressor: PolyleafRegressor, DaskPolyleafClassifier: PolyleafClassifier}
UNSEEN = np.arange(0, N, 3)


@pytest.fixture(scope="module")
def pair():
    """A cluster of two workers."""
    one = Cluster(2)
    yield one
    one.close()


def waited_for(condition):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def file_of(model, folder):
    model.save_model(folder / "model")
    return (folder / "model").read_bytes()


def assert_same_file(folder, kind, params, given, plain, evals=None, plain_evals=None, **options):
    """Compare the file of a fit on Dask tables `given` with that of a plain fit on `plain`."""
    params = COMMON | params
    model = kind(**params).fit(*given, eval_set=evals, **options)
    local = model.to_local()
    assert type(local) is PLAIN[kind]
    expected = PLAIN[kind](**params).fit(*plain, eval_set=plain_evals)
    assert file_of(local, folder) == file_of(expected, folder)
    assert local.evals_result_ == expected.evals_result_
    assert model.best_iteration_ == expected.best_iteration_
    return model


def test_any_number_of_workers(tmp_path):
    cluster = Cluster(4)
    try:
        y = frame(CLASSES, [30, 31, 60, 100])
        plain = (TABLE, CLASSES, WEIGHT)
        for n_workers in (4, 3, 2, 1):
            cluster.client.retire_workers(sorted(cluster.client.nthreads())[n_workers:])
            waited_for(lambda n=n_workers: len(cluster.client.nthreads()) == n)
            given = (frame(TABLE, range(10, N, 10)), y, array(WEIGHT, 50))
            params = {"categorical_features": ["town"], "subsample": 0.7, "random_state": 3}
            assert_same_file(tmp_path, DaskPolyleafClassifier, params, given, plain, client=cluster.client)
            assert cluster.left_behind(list(cluster.client.nthreads())) == {}
    finally:
        cluster.close()


ARRAYS = {
    "rows in chunks": (array(X, 50), array(Y, 50), None),
    "mixed chunks": (array(X, (1, 7, 80, 32)), array(Y, (1, 7, 80, 32)), None),
    "other chunks of y": (array(X, (40, 70, 10)), array(Y, (100, 20)), array(WEIGHT, 33)),
    "columns in chunks": (array(X, 40).rechunk({1: 2}), array(Y, 40).rechunk({1: 1}), None),
    "one target": (array(X, 40), array(Y[:, 0], 30), None),
    "one chunk": (array(X, N), array(Y, N), None),
    "chunks without rows": (array(X, (0, 60, 0, 60, 0)), array(Y, (60, 0, 60)), None),
    "chunks of unknown length": (array(X, 40)[array(np.ones(N, dtype=bool), 40)], array(Y, 50), None),
    "weights of cells": (array(X, 40), array(Y, 50), array(np.abs(Y), 60)),
}


def test_chunks_of_other_lengths_than_dask_says(pair):
    fewer = [table.map_blocks(lambda block: block[:9], dtype=float) for table in (array(X, 10), array(Y, 10))]
    with pytest.raises(ValueError, match=r"partition \d+ of X has 10 rows, says Dask, and 9 rows of X"):
        DaskPolyleafRegressor(**COMMON).fit(*fewer)


def test_histograms_that_are_sent(pair, tmp_path):
    """As between machines."""
    given = ARRAYS["mixed chunks"][:2]
    with dask.config.set({"polyleaf.shared-memory": False}):
        assert_same_file(tmp_path, DaskPolyleafRegressor, {}, given, (X, Y))


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(pair, tmp_path, name):
    given = ARRAYS[name]
    with dask.config.set(scheduler="synchronous"):
        plain = [None if table is None else table.compute() for table in given]
    assert_same_file(tmp_path, DaskPolyleafRegressor, {}, given, plain, client=pair.client)


@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_dtypes_are_kept(pair, tmp_path, dtype):
    values = (np.nan_to_num(X) * 10).astype(dtype)
    given = (array(values, 50), array(Y.astype("float32"), 50))
    assert_same_file(tmp_path, DaskPolyleafRegressor, {}, given, (values, Y.astype("float32")))


CUTS = [20, 20, 65, 100]
TOWN = {"categorical_features": ["town"]}
FRAMES = {
    "targets": (DaskPolyleafRegressor, TARGETS, None),
    "weights": (DaskPolyleafRegressor, TARGETS, WEIGHT),
    "missing targets": (DaskPolyleafRegressor, GAPS, WEIGHT),
    "classes as text": (DaskPolyleafClassifier, CLASSES, WEIGHT),
    "labels": (DaskPolyleafClassifier, LABELS, None),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frames_with_text_and_empty_partitions(pair, tmp_path, name):
    kind, y, weight = FRAMES[name]
    given = (frame(TABLE, CUTS), frame(y, [70]), None if weight is None else frame(weight, [0, 10]))
    model = assert_same_file(tmp_path, kind, TOWN, given, (TABLE, y, weight))
    assert list(model.feature_names_in_) == list(TABLE.columns)


@pytest.mark.parametrize("which", ["known", "unknown", "by partition"])
def test_categories_of_pandas(pair, tmp_path, which):
    """Those of a partition may be others than those of the next, in another order."""
    whole = TABLE.assign(town=TABLE["town"].astype("category"))
    if which == "by partition":
        X = frame(TABLE, [3, 6, 65])
        X["town"] = X["town"].astype("category")
        first, second, *_ = [list(part.compute()["town"].cat.categories) for part in X.partitions]
        assert first != second
    else:
        X = frame(whole, CUTS)
        if which == "unknown":
            X["town"] = X["town"].cat.as_unknown()
    assert_same_file(
        tmp_path,
        DaskPolyleafRegressor,
        {"categorical_features": "auto"},
        (X, frame(TARGETS, [70])),
        (whole, TARGETS),
    )


def test_evaluation_sets_and_early_stopping(pair, tmp_path):
    sets = {"near": slice(0, 50), "far": UNSEEN}
    params = TOWN | {"n_estimators": 30, "early_stopping_rounds": 2, "learning_rate": 0.9, "max_leaves": 3}
    model = assert_same_file(
        tmp_path,
        DaskPolyleafRegressor,
        params | {"eval_metric": ["rmse", "mae"]},
        (frame(TABLE, CUTS), frame(TARGETS, [70])),
        (TABLE, TARGETS),
        {
            name: (frame(TABLE.iloc[rows], [0, 11]), frame(TARGETS.iloc[rows], [30]))
            for name, rows in sets.items()
        },
        {name: (TABLE.iloc[rows], TARGETS.iloc[rows]) for name, rows in sets.items()},
    )
    assert model.n_estimators_ < 30
    assert set(model.evals_result_) == {"near", "far"}


def test_weights_of_evaluation_sets(pair, tmp_path):
    rows, y, weight = slice(30, 90), CLASSES.to_numpy(dtype=str), WEIGHT.to_numpy()
    model = DaskPolyleafClassifier(**COMMON).fit(
        array(X, 50),
        array(y, 70),
        eval_set=[(array(X[rows], 25), array(y[rows], 60))],
        eval_sample_weight=[array(weight[rows], 60)],
    )
    plain = PolyleafClassifier(**COMMON).fit(
        X, y, eval_set=[(X[rows], y[rows])], eval_sample_weight=[weight[rows]]
    )
    assert file_of(model.to_local(), tmp_path) == file_of(plain, tmp_path)
    assert model.evals_result_ == plain.evals_result_


def test_classes_as_an_array_of_objects(pair, tmp_path):
    y = CLASSES.to_numpy(dtype=object)
    assert_same_file(tmp_path, DaskPolyleafClassifier, {}, (array(X, 50), array(y, 50)), (X, y))


class Note:
    """Writes a line for each round, and ends the training after the third."""

    def __init__(self, path):
        self.path = path

    def after_round(self, state):
        with open(self.path, "a") as lines:
            lines.write(f"{state.round}\n")
        return state.round == 2


def test_callbacks_are_called_once_a_round(pair, tmp_path):
    callbacks = [Note(tmp_path / "rounds"), LearningRateSchedule(halved)]
    model = assert_same_file(
        tmp_path,
        DaskPolyleafRegressor,
        {"callbacks": callbacks, "n_estimators": 8},
        (array(X, 40), array(Y, 40)),
        (X, Y),
    )
    assert model.n_estimators_ == 3
    assert (tmp_path / "rounds").read_text().split() == ["0", "1", "2"] * 2


def halved(number):
    return 0.5 / (number + 1)


def test_an_error_of_a_callback_comes_to_the_client(pair):
    def broken(state):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        DaskPolyleafRegressor(**COMMON, callbacks=[broken]).fit(array(X, 40), array(Y, 40))
    assert pair.left_behind(list(pair.client.nthreads())) == {}


def test_a_random_state_advances_once_a_fit(pair, tmp_path):
    params = COMMON | {"subsample": 0.5}
    state = np.random.RandomState(5)
    model = DaskPolyleafRegressor(**params, random_state=np.random.RandomState(5))
    for _ in range(2):
        expected = PLAIN[DaskPolyleafRegressor](**params, random_state=state).fit(X, Y)
        assert file_of(model.fit(array(X, 40), array(Y, 40)).to_local(), tmp_path) == file_of(
            expected, tmp_path
        )
    assert model.random_state.randint(1 << 30) == state.randint(1 << 30)


def test_two_fits_at_once(pair, tmp_path):
    files = {}

    def one(seed):
        params = COMMON | {"subsample": 0.5, "random_state": seed, "n_estimators": 4}
        model = DaskPolyleafRegressor(**params).fit(array(X, 30), array(Y, 50), client=pair.client)
        (tmp_path / str(seed)).mkdir()
        files[seed] = file_of(model.to_local(), tmp_path / str(seed))

    threads = [threading.Thread(target=one, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in (1, 2):
        params = COMMON | {"subsample": 0.5, "random_state": seed, "n_estimators": 4}
        assert files[seed] == file_of(PolyleafRegressor(**params).fit(X, Y), tmp_path)
    assert pair.left_behind(list(pair.client.nthreads())) == {}


class Slow:
    """Shows that a round is done, and takes its time."""

    def __init__(self, path):
        self.path = path

    def after_round(self, state):
        self.path.write_text("")
        time.sleep(0.05)


def in_memory(client):
    """Keys of all that workers hold."""
    return {str(key) for keys in client.has_what().values() for key in keys}


def test_ctrl_c_leaves_nothing_behind(pair, tmp_path):
    client = pair.client
    before = in_memory(client)  # what the errors of other tests still refer to

    def press():
        waited_for((tmp_path / "begun").exists)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    model = DaskPolyleafRegressor(**COMMON | {"n_estimators": 10_000}, callbacks=[Slow(tmp_path / "begun")])
    with pytest.raises(KeyboardInterrupt):
        model.fit(array(X, 30), array(Y, 50))
    assert pair.left_behind(list(client.nthreads())) == {}
    waited_for(lambda: in_memory(client) <= before)
    waited_for(lambda: not any(client.processing().values()))
    plain = PolyleafRegressor(**COMMON | {"n_estimators": model.n_estimators_}).fit(X, Y)
    np.testing.assert_array_equal(model.to_local().predict(X), plain.predict(X))  # the rounds done are kept


@pytest.fixture(scope="module")
def regressor(pair):
    return DaskPolyleafRegressor(**COMMON | TOWN).fit(frame(TABLE, CUTS), frame(TARGETS, [70]))


@pytest.fixture(scope="module")
def classifier(pair):
    return DaskPolyleafClassifier(**COMMON).fit(array(X, 50), array(CLASSES.to_numpy(dtype=str), 50))


def test_nothing_is_predicted_before_it_is_asked_for(classifier, tmp_path):
    rows = watched(X, tmp_path)
    classes, probabilities = classifier.predict(rows), classifier.predict_proba(rows)
    assert not list(tmp_path.iterdir())
    assert (classes.shape, probabilities.shape) == ((N,), (N, 3))
    assert (classes.chunks, probabilities.chunks) == (((40, 40, 40),), ((40, 40, 40), (3,)))
    local = classifier.to_local()
    np.testing.assert_array_equal(classes.compute(), local.predict(X))
    np.testing.assert_array_equal(probabilities.compute(), local.predict_proba(X))
    assert len(list(tmp_path.iterdir())) == 3
    assert (classes.dtype, probabilities.dtype) == (classes.compute().dtype, probabilities.compute().dtype)


def test_arrays_of_predictions_with_empty_and_mixed_chunks(classifier):
    rows = array(X, (0, 100, 0, 20)).rechunk({1: 2})
    local = classifier.to_local()
    np.testing.assert_array_equal(classifier.predict_proba(rows).compute(), local.predict_proba(X))
    np.testing.assert_array_equal(
        classifier.predict(rows, n_rounds=1).compute(), local.predict(X, n_rounds=1)
    )
    assert classifier.predict(rows[:0]).compute().shape == (0,)
    assert classifier.predict_proba(rows[:0]).compute().shape == (0, 3)


def test_several_targets_of_arrays(pair):
    model = DaskPolyleafRegressor(**COMMON).fit(array(X, 50), array(Y, 50))
    found = model.predict(array(X, (0, 120)))
    assert (found.shape, found.dtype) == ((N, 3), model.to_local().predict(X).dtype)
    np.testing.assert_array_equal(found.compute(), model.to_local().predict(X))


def test_frames_of_predictions_have_names_and_index(regressor):
    found = regressor.predict(frame(TABLE, [0, *CUTS, N]))
    assert isinstance(found, dd.DataFrame)
    assert list(found.columns) == ["u", "v", "w"]
    expected = regressor.to_local().predict(TABLE, as_frame=True)
    pd.testing.assert_frame_equal(found.compute(), expected)
    pd.testing.assert_frame_equal(found._meta, expected.iloc[:0])
    assert expected.index.equals(TABLE.index)
    joined = frame(TABLE, [70]).assign(v=regressor.predict(frame(TABLE, [70]))["v"]).compute()
    pd.testing.assert_series_equal(joined["v"].sort_index(), expected["v"])


def test_frames_of_predicted_classes(pair):
    model = DaskPolyleafClassifier(**COMMON | TOWN).fit(frame(TABLE, CUTS), frame(CLASSES, [70]))
    local = model.to_local()
    found = model.predict(frame(TABLE, CUTS))
    pd.testing.assert_frame_equal(found.compute(), local.predict(TABLE, as_frame=True))
    assert list(found.columns) == ["level"]
    probabilities = model.predict_proba(frame(TABLE, CUTS))
    assert list(probabilities.columns) == ["high", "low", "mid"]
    pd.testing.assert_frame_equal(probabilities.compute(), local.predict_proba(TABLE, as_frame=True))


def test_predictions_of_labels(pair):
    model = DaskPolyleafClassifier(**COMMON).fit(array(X, 50), array(LABELS, 50))
    local = model.to_local()
    np.testing.assert_array_equal(model.predict(array(X, 50)).compute(), local.predict(X))
    np.testing.assert_array_equal(model.predict_proba(array(X, 50)).compute(), local.predict_proba(X))


def test_a_model_that_is_predicted_with_before_fit_is_refused():
    from sklearn.exceptions import NotFittedError

    for call in (DaskPolyleafRegressor().predict, DaskPolyleafClassifier().predict_proba):
        with pytest.raises(NotFittedError):
            call(array(X, 50))
    with pytest.raises(NotFittedError):
        DaskPolyleafRegressor().to_local()
