"""What a fit or a prediction on a cluster cannot do is refused by name, before anything is computed."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("distributed", reason='Dask is not installed: pip install "polyleaf[dask]"')

import dask.array as da
import dask.dataframe as dd
from distributed import Client, LocalCluster
from rows import CLASSES, TABLE, TARGETS, WEIGHT, N, X, Y, array, frame, watched

import dask
from cluster import Cluster
from polyleaf.dask import DaskPolyleafClassifier, DaskPolyleafRegressor
from polyleaf.dask.config import Config
from polyleaf.dask.messages import Deadlines

pytestmark = [
    pytest.mark.cpu_only("shards are of the CPU"),
    pytest.mark.other_threads("Dask's workers are processes of their own"),
]

COMMON = {"n_estimators": 2, "max_leaves": 5, "min_samples_leaf": 3}


def objective(y, scores, weight):
    return scores - y, np.ones_like(y)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"objective": objective}, "callable objective"),
        ({"sampling_method": "gradient_based", "subsample": 0.5}, "sampling_method='gradient_based'"),
        ({"hessian": "exact", "objective": "cross_entropy"}, "hessian='exact'"),
        ({"device": "cuda"}, "cuda"),
        ({"n_estimators": -1}, "n_estimators"),
        ({"n_bags": 2}, "n_bags"),
        ({"max_depth": None}, "max_depth"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_options_are_refused_before_anything_is_computed(cluster, tmp_path, params, words):
    kind = DaskPolyleafClassifier if "hessian" in params else DaskPolyleafRegressor
    rows = watched(X, tmp_path)
    y = array(CLASSES if "hessian" in params else Y, 40)
    with pytest.raises(ValueError, match=words):
        kind(**{"n_estimators": 2} | params).fit(rows, y)
    assert not list(tmp_path.iterdir())
    assert cluster.left_behind(list(cluster.client.nthreads())) == {}


@pytest.mark.parametrize("which", ["X", "y"])
def test_sparse_tables_are_refused_before_anything_is_computed(cluster, tmp_path, which):
    from scipy.sparse import csr_array

    labels = (Y > 0.5).astype(float)
    dense = {"X": np.nan_to_num(X), "y": labels}[which]
    sparse = watched(dense, tmp_path).map_blocks(csr_array, dtype=float, meta=csr_array((0, 0)))
    tables = {"X": array(X, 40), "y": array(labels, 40)} | {which: sparse}
    with pytest.raises(ValueError, match=f"several shards do not go with a .*sparse {which}:"):
        DaskPolyleafClassifier(**COMMON, sparse_leaves=2 if which == "y" else None).fit(
            tables["X"], tables["y"]
        )
    assert not list(tmp_path.iterdir())


def test_tables_that_are_not_of_dask_are_named(cluster):
    fit = DaskPolyleafRegressor(**COMMON).fit
    rows, y = array(X, 40), array(Y, 40)
    what = "not an array, a data frame or a series of Dask"
    with pytest.raises(TypeError, match=f"X is a ndarray, {what}"):
        fit(X, y)
    with pytest.raises(TypeError, match=f"y is a DataFrame, {what}"):
        fit(rows, TARGETS)
    with pytest.raises(TypeError, match=f"sample_weight is a Series, {what}"):
        fit(rows, y, WEIGHT)
    with pytest.raises(TypeError, match=rf"eval_set\[0\].* is a ndarray, {what}"):
        fit(rows, y, eval_set=[(X, y)])
    with pytest.raises(TypeError, match="eval_set"):
        fit(rows, y, eval_set=[rows])


def test_tables_of_other_shapes_are_named(cluster):
    fit = DaskPolyleafRegressor(**COMMON).fit
    rows, y = array(X, 40), array(Y, 40)
    with pytest.raises(ValueError, match=f"X has {N} rows, y 110"):
        fit(rows, y[:110])
    with pytest.raises(ValueError, match=f"X has {N} rows, sample_weight 1"):
        fit(rows, y, array(WEIGHT, 40)[:1])
    with pytest.raises(ValueError, match=r"eval_set\[0\].* has 10 rows, .*eval_set\[0\].* 20"):
        fit(rows, y, eval_set=[(rows[:10], y[:20])])
    with pytest.raises(ValueError, match="X has 3 dimensions"):
        fit(da.zeros((N, 2, 2)), y)
    with pytest.raises(ValueError, match=r"X has 1 dimension|2D"):
        fit(rows[:, 0], y)
    with pytest.raises(ValueError, match="X has no rows"):
        fit(rows[:0], y[:0])
    assert cluster.left_behind(list(cluster.client.nthreads())) == {}


def test_columns_that_are_unknown_are_named(cluster):
    given = frame(TABLE, [50]), frame(TARGETS, [50])
    with pytest.raises(ValueError, match="city"):
        DaskPolyleafRegressor(**COMMON, categorical_features=["city"]).fit(*given)
    with pytest.raises(ValueError, match="town"):
        DaskPolyleafRegressor(**COMMON).fit(*given)
    kind = DaskPolyleafRegressor(**COMMON, categorical_features=["town"])
    other = frame(TABLE.rename(columns={"a": "z"}), [50])
    with pytest.raises(ValueError, match=r"X of eval_set\[0\]: The feature names(.|\n)* z"):
        kind.fit(*given, eval_set=[(other, given[1])])
    model = kind.fit(*given)
    with pytest.raises(ValueError, match="z"):
        model.predict(other)
    with pytest.raises(ValueError, match=r"5 features|z"):
        model.predict(frame(TABLE.assign(z=1.0), [50]))


def test_bad_tables_to_predict_are_refused_before_anything_is_computed(cluster, tmp_path):
    model = DaskPolyleafRegressor(**COMMON).fit(array(X, 40), array(Y, 40))
    with pytest.raises(TypeError, match=r"X is a ndarray, .*to_local"):
        model.predict(X)
    with pytest.raises(ValueError, match="X has 1 dimension"):
        model.predict(array(X[:, 0], 40))
    with pytest.raises(ValueError, match=r"2 features.*3"):
        model.predict(watched(X[:, :2], tmp_path))
    with pytest.raises(ValueError, match="n_rounds"):
        model.predict(watched(X, tmp_path), n_rounds=7)
    assert not list(tmp_path.iterdir())


def test_errors_in_rows_name_them(cluster):
    fit = DaskPolyleafRegressor(**COMMON).fit
    broken = X.copy()
    broken[100, 1] = np.inf
    with pytest.raises(ValueError, match="inf"):
        fit(array(broken, 40), array(Y, 40))
    with pytest.raises(ValueError, match="sample_weight"):
        fit(array(X, 40), array(Y, 40), array(-WEIGHT, 40))
    assert cluster.left_behind(list(cluster.client.nthreads())) == {}


def test_partitions_with_other_columns_are_named(cluster):
    """Also where a worker has one beside others: those of a data frame would be joined by their names."""
    assert len(cluster.client.nthreads()) < 6  # so that each has some of 12

    def narrow(block, block_id=None):
        return block[:, :2] if block_id and block_id[0] == 5 else block

    rows = array(X, 10).map_blocks(narrow, dtype=float, meta=X[:0])
    with pytest.raises(ValueError, match=r"partition \d of X is not like partition \d") as caught:
        DaskPolyleafRegressor(**COMMON).fit(rows, array(Y, 30))
    assert "partition 5" in str(caught.value)
    frames = [TABLE[["a", "b"]].iloc[low : low + 10] for low in range(0, N, 10)]
    frames[5] = frames[5].rename(columns={"b": "z"})
    table = dd.from_delayed([dask.delayed(one) for one in frames], meta=frames[0][:0], verify_meta=False)
    with pytest.raises(ValueError, match=r"X has a column '(b|z)' where '(b|z)' is") as caught:
        DaskPolyleafRegressor(**COMMON).fit(table, array(Y, 30))
    assert "partition 5" in str(caught.value)
    assert cluster.left_behind(list(cluster.client.nthreads())) == {}


def test_training_rows_that_are_too_many_for_a_metric_are_refused(monkeypatch):
    """Where verbose would show it after each round, and no evaluation set stands for them."""
    monkeypatch.setattr("polyleaf.peers.gather.MOST_GATHERED_BYTES", 100)
    params = COMMON | {"eval_metric": "auc", "verbose": 1}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as local,
        Client(local, set_as_default=False) as client,
    ):
        rows, y = array(X, 40), array(CLASSES, 40)
        with pytest.raises(ValueError, match=rf"the metric 'auc' on 'training' \({N} rows of 3 predictions"):
            DaskPolyleafClassifier(**params).fit(rows, y, client=client)
        quiet = DaskPolyleafClassifier(**params | {"verbose": 0}).fit(rows, y, client=client)
        assert quiet.n_estimators_ == 2


def test_a_cluster_without_workers():
    cluster = Cluster(0)
    try:
        with pytest.raises(ValueError, match="the cluster has no workers"):
            DaskPolyleafRegressor().fit(array(X, 40), array(Y, 40), client=cluster.client)
    finally:
        cluster.close()


def test_clients_that_cannot_train(cluster):
    given = array(X, 40), array(Y, 40)
    with pytest.raises(TypeError, match=r"client is a str, not a distributed\.Client"):
        DaskPolyleafRegressor().fit(*given, client=cluster.client.scheduler.address)

    async def asynchronous():
        address = cluster.client.scheduler.address
        async with Client(address, asynchronous=True, set_as_default=False) as client:
            with pytest.raises(TypeError, match="not asynchronous"):
                DaskPolyleafRegressor().fit(*given, client=client)

    cluster.client.sync(asynchronous)


def test_a_row_at_fault_is_named_by_its_number_among_all(cluster):
    weight = np.where(np.arange(N) < 10, 0.0, 1.0)
    wrong = np.where(np.arange(N) == 85, -1.0, weight)
    given = array(X, 40), array(np.where(np.arange(N) == 85, -3.0, np.abs(Y[:, 0])), 40)
    place = r"in row 85 \(row 5 of partition 2\)"
    with pytest.raises(ValueError, match=f"sample_weight must be finite and >= 0; got -1.0 {place}"):
        DaskPolyleafRegressor(**COMMON).fit(*given, sample_weight=array(wrong, 40))
    with pytest.raises(ValueError, match=f"y is -3.0 {place}"):
        DaskPolyleafRegressor(**COMMON, objective="poisson").fit(*given, sample_weight=array(weight, 30))


def test_no_client(monkeypatch):
    import distributed.client

    monkeypatch.setattr(distributed.client, "_get_global_client", lambda: None)
    with pytest.raises(ValueError, match="client"):
        DaskPolyleafRegressor().fit(array(X, 40), array(Y, 40))


def test_the_configuration():
    assert Config.read().deadlines == Deadlines()
    with dask.config.set({"polyleaf.deadlines": {"beat": "250 ms", "silence": 4}}):
        assert Config.read().deadlines == Deadlines(beat=0.25, silence=4.0)
    with (
        dask.config.set({"polyleaf.deadlines.quiet": 3}),
        pytest.raises(ValueError, match=r"polyleaf\.deadlines has quiet; there are beat, silence"),
    ):
        Config.read()
    assert Config.read().shared_memory
    with dask.config.set({"polyleaf.shared_memory": False}):
        assert not Config.read().shared_memory


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"shared-memory": "no"}, r"polyleaf\.shared-memory is true or false, not 'no'"),
        ({"sharedmemory": True}, "polyleaf has sharedmemory; there are deadlines, shared-memory"),
        ({"deadlines": 20}, r"polyleaf\.deadlines is a mapping with beat, silence"),
        *(
            ({"deadlines": {"silence": value}}, r"polyleaf\.deadlines\.silence is .*seconds above 0")
            for value in (-5, 0, "soon", True, None, "1e400", float("nan"))
        ),
    ],
)
def test_a_wrong_configuration_is_named(given, words):
    with dask.config.set({"polyleaf": given}), pytest.raises(ValueError, match=words):
        Config.read()
