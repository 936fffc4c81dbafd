"""Checkpoints of a fit on a cluster are those of a plain fit, byte for byte; either goes on from either."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("distributed", reason='Dask is not installed: pip install "polyleaf[dask]"')

from rows import CLASSES, TABLE, TARGETS, WEIGHT, N, X, Y, array, frame, watched

from polyleaf import PolyleafClassifier, PolyleafRegressor, load_model
from polyleaf.callbacks import Checkpoint, EarlyStopping
from polyleaf.dask import DaskPolyleafClassifier, DaskPolyleafRegressor

pytestmark = [
    pytest.mark.cpu_only("shards are of the CPU"),
    pytest.mark.other_threads("Dask's workers are processes of their own"),
]

COMMON = {"n_estimators": 7, "max_leaves": 5, "min_samples_leaf": 3, "subsample": 0.8, "random_state": 3}
TOWN = {"categorical_features": ["town"]}
COUNTS = pd.DataFrame({"n": np.arange(N) % 7, "m": np.arange(N) % 5}, dtype="Int64")
COUNTS.loc[100, "m"] = pd.NA  # numbers of the other partitions are integers


class Stop(Exception):
    pass


def stop(state):
    if state.n_done == 5:
        raise Stop


# The kinds of estimators, parameters, tables of Dask and plain ones.
REGRESSORS = (DaskPolyleafRegressor, PolyleafRegressor)
CASES = {
    "arrays": (REGRESSORS, {}, (array(X, 40), array(Y, 30)), (X, Y)),
    "float32": (REGRESSORS, {}, (array(X.astype("f4"), 70), array(Y, 30)), (X.astype("f4"), Y)),
    "rows of no weight": (
        REGRESSORS,
        TOWN,
        (frame(TABLE, [20, 20, 65]), frame(TARGETS, [70]), array(WEIGHT, 50)),
        (TABLE, TARGETS, WEIGHT),
    ),
    "classes": (
        (DaskPolyleafClassifier, PolyleafClassifier),
        TOWN,
        (frame(TABLE, [20, 65]), frame(CLASSES, [70])),
        (TABLE, CLASSES),
    ),
    "a gap in one partition": (
        REGRESSORS,
        {},
        (frame(COUNTS, [30, 60, 90]), array(Y, 60)),
        (COUNTS, Y),
    ),
}


def broken_off(case, on_cluster, path):
    """Write a checkpoint of a run that ends in an error after five rounds."""
    kinds, params, given, plain = CASES[case]
    kind = kinds[0] if on_cluster else kinds[1]
    model = kind(**COMMON | params, callbacks=[Checkpoint(path, every=3), stop])
    with pytest.raises(Stop):
        model.fit(*(given if on_cluster else plain))
    return path.read_bytes()


@pytest.mark.parametrize("case", CASES)
def test_the_file_is_that_of_a_plain_fit_and_either_goes_on(cluster, tmp_path, case):
    (kind, plain_kind), params, given, plain = CASES[case]
    path = tmp_path / "checkpoint"
    written = broken_off(case, True, path)
    assert load_model(path).n_estimators_ == 5  # three rounds, and the rest at the end
    resumed = [kind(**COMMON | params).fit(*given, resume=path).to_local()]
    resumed.append(plain_kind(**COMMON | params).fit(*plain, resume=path))
    assert broken_off(case, False, path) == written
    files = []
    for model in resumed:
        model.save_model(tmp_path / "model")
        files.append((tmp_path / "model").read_bytes())
    assert files[0] == files[1]
    unbroken = plain_kind(**COMMON | params).fit(*plain)
    np.testing.assert_array_equal(resumed[0].predict(plain[0]), unbroken.predict(plain[0]))
    assert resumed[0].n_estimators_ == 7


def test_going_on_covers_all_rounds_of_evaluation_sets(cluster, tmp_path):
    path = tmp_path / "checkpoint"
    broken_off("arrays", False, path)
    seen = []
    params = COMMON | {"callbacks": [EarlyStopping(50), lambda state: seen.append(state.round)]}
    model = DaskPolyleafRegressor(**params).fit(
        array(X, 40), array(Y, 30), resume=path, eval_set=[(array(X, 50), array(Y, 50))]
    )
    unbroken = PolyleafRegressor(**params).fit(X, Y, eval_set=[(X, Y)])
    assert model.evals_result_ == unbroken.evals_result_
    assert model.best_iteration_ == unbroken.best_iteration_
    assert seen == [5, 6, *range(7)]


def test_resuming_what_is_done_adds_nothing(cluster, tmp_path):
    path, seen = tmp_path / "checkpoint", []
    broken_off("arrays", False, path)
    params = COMMON | {"n_estimators": 5, "callbacks": [seen.append]}
    model = DaskPolyleafRegressor(**params).fit(array(X, 40), array(Y, 30), resume=path)
    assert (model.n_estimators_, seen) == (5, [])


@pytest.mark.parametrize("how", ["init_model", "warm_start"])
def test_other_ways_to_go_on(cluster, how):
    given = array(X, 40), array(Y, 30)
    if how == "init_model":
        first = PolyleafRegressor(**COMMON | {"n_estimators": 3}).fit(X, Y)
        model = DaskPolyleafRegressor(**COMMON | {"n_estimators": 4}).fit(*given, init_model=first)
    else:
        model = DaskPolyleafRegressor(**COMMON | {"n_estimators": 3, "warm_start": True}).fit(*given)
        model.set_params(n_estimators=7).fit(*given)
    assert model.n_estimators_ == 7
    unbroken = PolyleafRegressor(**COMMON).fit(X, Y)
    np.testing.assert_array_equal(model.to_local().predict(X), unbroken.predict(X))


def changed(values, row):
    values = np.array(values)
    values[row, 0] += 1
    return values


OTHER_DATA = {
    "a value of X": ((changed(X, 100), Y), "other data: X holds other values"),
    "a value of y": ((X, changed(Y, 3)), "other data: y holds other values"),
    "order": ((X[::-1], Y[::-1]), "other data: X holds other values"),
    "rows": ((X[:110], Y[:110]), r"other data: X had shape \[120, 3\], and has \[110, 3\] now"),
    "dtype": ((X.astype("f4"), Y), "other data: X had dtype float64, and has float32 now"),
    "weights": ((X, Y, WEIGHT.to_numpy() + 1), "other data: sample_weight was not given, and is now"),
}


def test_a_checkpoint_of_other_data_is_refused(cluster, tmp_path):
    path = tmp_path / "checkpoint"
    broken_off("arrays", True, path)
    for tables, words in OTHER_DATA.values():
        with pytest.raises(ValueError, match=words):
            DaskPolyleafRegressor(**COMMON).fit(*(array(table, 40) for table in tables), resume=path)
    assert cluster.left_behind(list(cluster.client.nthreads())) == {}


def test_what_cannot_go_on_or_be_written_is_refused_before_anything_is_computed(cluster, tmp_path):
    path, folder = tmp_path / "checkpoint", tmp_path / "computed"
    folder.mkdir()
    broken_off("arrays", False, path)
    given = watched(X, folder), array(Y, 30)
    other = DaskPolyleafRegressor(**COMMON | {"max_leaves": 4})
    with pytest.raises(ValueError, match="other parameters: max_leaves was 5, and is 4 now"):
        other.fit(*given, resume=path)
    with pytest.raises(ValueError, match="the model is a regressor, this is a classifier"):
        DaskPolyleafClassifier(**COMMON).fit(*given, resume=path)
    with pytest.raises(ValueError, match="init_model and resume"):
        other.fit(*given, resume=path, init_model=path)
    nowhere = DaskPolyleafRegressor(**COMMON, callbacks=[Checkpoint(tmp_path / "nowhere" / "checkpoint")])
    with pytest.raises(OSError, match="nowhere"):
        nowhere.fit(*given)
    assert not list(folder.iterdir())
