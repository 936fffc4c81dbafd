"""GBDT-sparse: labels as a sparse matrix, which is never made dense, give the model of the dense matrix."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from polyleaf import PolyleafClassifier, load_model

SETTINGS = {"objective": "clipped_squared_error", "min_samples_leaf": 5, "max_depth": 4, "n_estimators": 15}


def problem(n_rows=400, n_labels=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 8))
    score = X[:, :5] @ rng.normal(size=(5, n_labels))
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, (score > np.quantile(score, 0.9)).astype(np.int64)


@pytest.mark.parametrize("sparse_mode", ["restricted", "unrestricted"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("k", [1, 4, 29])
def test_sparse_labels_give_the_forest_of_dense_ones(sparse_mode, weighted, sampled, k):
    X, Y = problem()
    weight = np.random.default_rng(1).integers(1, 4, len(X)).astype(float) if weighted else None
    sample = {"subsample": 0.7, "colsample_bytree": 0.6, "random_state": 3} if sampled else {}
    settings = SETTINGS | sample | {"sparse_leaves": k, "sparse_mode": sparse_mode}
    dense = PolyleafClassifier(**settings).fit(X, Y, weight)
    sparse = PolyleafClassifier(**settings).fit(X, scipy.sparse.csr_matrix(Y), weight)
    arrays = dense._forest.to_arrays()
    assert arrays.keys() - sparse._forest.to_arrays().keys() == {"gain_feature", "output_gain"}
    for name, array in sparse._forest.to_arrays().items():
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)
    np.testing.assert_array_equal(sparse.predict(X).toarray(), dense.predict(X))
    np.testing.assert_array_equal(dense.predict(X, sparse=True).toarray(), dense.predict(X))


def test_threads_change_no_bit():
    X, Y = problem()
    one, three = (
        PolyleafClassifier(sparse_leaves=5, n_jobs=n, **SETTINGS).fit(X, scipy.sparse.csr_array(Y))
        for n in (1, 3)
    )
    np.testing.assert_array_equal(one.decision_function(X), three.decision_function(X))


def test_threads_change_no_bit_of_weights_that_differ_widely():
    """They are summed plainly, in the order of the rows, whatever splits are looked at beside the tree's."""
    X, Y = problem(n_rows=4000)
    X = np.hstack([X] * 4)
    weight = 10.0 ** np.random.default_rng(2).uniform(-12, 3, len(X))
    settings = {"n_estimators": 6, "max_depth": None, "max_leaves": 6, "sparse_leaves": 3, "random_state": 0}
    one, four = (
        PolyleafClassifier(n_jobs=n, **SETTINGS | settings).fit(X, scipy.sparse.csr_array(Y), weight)._forest
        for n in (1, 4)
    )
    np.testing.assert_array_equal(one.cover, four.cover)
    np.testing.assert_array_equal(one.values, four.values)


def test_loss_is_the_clipped_squared_error():
    """Scores above 1 of a label, and below 0 of none, are left alone: the loss falls and never overshoots."""
    X, Y = problem()
    model = PolyleafClassifier(sparse_leaves=10, **SETTINGS | {"n_estimators": 60, "learning_rate": 0.1}).fit(
        X, Y
    )
    raws = list(model._forest.staged_raw(X))
    losses = [np.mean(np.where(Y == 1, np.maximum(1 - f, 0) ** 2, np.maximum(f, 0) ** 2)) for f in raws]
    assert (np.diff(losses) < 0).all()
    assert losses[-1] < 0.3 * np.mean(Y)


def test_top_k_labels_are_those_of_the_largest_scores():
    X, Y = problem()
    model = PolyleafClassifier(sparse_leaves=10, **SETTINGS).fit(X, scipy.sparse.csr_matrix(Y))
    raw = model.decision_function(X)
    top = model.predict(X, top_k=3)
    assert top.shape == (len(X), 3)
    np.testing.assert_array_equal(np.take_along_axis(raw, top, axis=1), -np.sort(-raw, axis=1)[:, :3])


def test_model_file_remembers_that_labels_were_sparse(tmp_path):
    X, Y = problem()
    model = PolyleafClassifier(sparse_leaves=4, **SETTINGS).fit(X, scipy.sparse.csr_matrix(Y))
    model.save_model(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert scipy.sparse.issparse(loaded.predict(X))
    np.testing.assert_array_equal(loaded.predict(X).toarray(), model.predict(X).toarray())
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    dense_leaves = PolyleafClassifier(**SETTINGS).fit(X, Y)
    dense_leaves.save_model(tmp_path / "dense")
    assert (tmp_path / "model").stat().st_size < 0.8 * (tmp_path / "dense").stat().st_size


def test_early_stopping_watches_a_ranking():
    X, Y = problem(800)
    model = PolyleafClassifier(
        sparse_leaves=5,
        early_stopping_rounds=5,
        eval_metric="precision@3",
        **SETTINGS | {"n_estimators": 100},
    )
    model.fit(
        X[:600], scipy.sparse.csr_matrix(Y[:600]), eval_set=[(X[600:], scipy.sparse.csr_matrix(Y[600:]))]
    )
    history = model.evals_result_["validation_0"]["precision@3"]
    assert model.best_iteration_ == int(np.argmax(history))


def test_thousands_of_labels_are_never_made_dense():
    """3,000 rows x 4,000 labels would take 96 MB as float64; fit and predict stay far below."""
    rng = np.random.default_rng(0)
    n_rows, n_labels = 3000, 4000
    group = rng.integers(0, 800, n_rows)
    X = ((group[:, None] >> np.arange(10)) & 1) + 0.1 * rng.normal(size=(n_rows, 10))
    rows = np.repeat(np.arange(n_rows), 5)
    labels = group[rows] * 5 + np.tile(np.arange(5), n_rows)
    Y = scipy.sparse.csr_matrix((np.ones(len(rows)), (rows, labels)), shape=(n_rows, n_labels))
    settings = SETTINGS | {"n_estimators": 3, "max_bins": 16, "max_depth": 8}
    tracemalloc.start()
    model = PolyleafClassifier(sparse_leaves=20, **settings).fit(X, Y)
    top = model.predict(X, top_k=5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6
    hits = np.mean([np.isin(top[i], Y[[i]].indices).mean() for i in range(300)])
    assert hits > 20 * 5 / n_labels


BAD = {
    "NaN": (lambda Y: Y * np.nan, "y must be a matrix of 0 and 1"),
    "two": (lambda Y: Y * 2, "y must be a matrix of 0 and 1"),
    "too few rows": (lambda Y: Y[:-1], "y has 399 row"),
    "complex": (lambda Y: Y * 1j, "y is sparse with dtype"),
    "one column": (lambda Y: Y[:, :1], "y is sparse with shape"),
}


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD.keys())
def test_bad_sparse_labels_are_refused(change, message):
    X, Y = problem()
    with pytest.raises(ValueError, match=message):
        PolyleafClassifier(sparse_leaves=4, **SETTINGS).fit(X, change(scipy.sparse.csr_matrix(Y)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": None, "sparse_leaves": 3}, "objective='clipped_squared_error'"),
        ({"sparse_leaves": None}, "needs sparse_leaves"),
        ({"sparse_leaves": 31}, "sparse_leaves=31 is more than the number of outputs, 30"),
        ({"sparse_leaves": 3, "base_score": 0.5}, "base_score=0"),
        ({"sparse_leaves": 3, "multi_strategy": "one_output_per_tree"}, "multi_strategy"),
    ],
)
def test_settings_that_do_not_suit_sparse_labels_are_refused(settings, message):
    X, Y = problem()
    with pytest.raises(ValueError, match=message):
        PolyleafClassifier(**SETTINGS | settings).fit(X, scipy.sparse.csr_matrix(Y))


def test_explicit_zeros_and_repeated_entries_do_not_matter():
    X, Y = problem()
    clean = scipy.sparse.csr_matrix(Y)
    rows, columns = Y.nonzero()
    untidy = scipy.sparse.coo_matrix(
        (
            np.r_[np.ones(len(rows)), np.zeros(5)],
            (np.r_[rows, np.arange(5)], np.r_[columns, np.zeros(5, int)]),
        ),
        shape=Y.shape,
    )
    settings = SETTINGS | {"sparse_leaves": 4}
    expected = PolyleafClassifier(**settings).fit(X, clean).decision_function(X)
    np.testing.assert_array_equal(
        PolyleafClassifier(**settings).fit(X, untidy).decision_function(X), expected
    )


RANKINGS = ["precision@3", "ndcg@5", "psp@3", "top1_accuracy", "accuracy", "f1_macro"]


@pytest.mark.parametrize("initial", [False, True])
def test_scores_of_evaluation_rows_are_those_of_dense_labels(initial):
    """They are kept as compressed rows, which all metrics take; those of the user get an array."""
    X, Y = problem(500)

    def own(y, prediction):
        return float(np.mean((prediction - (y.toarray() if scipy.sparse.issparse(y) else y)) ** 2))

    settings = SETTINGS | {"sparse_leaves": 4, "eval_metric": [*RANKINGS, own], "n_estimators": 6}
    found = []
    for form in (np.asarray, scipy.sparse.csr_matrix):
        evals = {"eval_set": [(X[400:], form(Y[400:]))]}
        before = None
        if initial:
            before = PolyleafClassifier(**settings | {"n_estimators": 3}).fit(X[:400], form(Y[:400]))
        model = PolyleafClassifier(**settings).fit(X[:400], form(Y[:400]), **evals, init_model=before)
        found.append(model.evals_result_["validation_0"])
    dense, sparse = found
    assert len(dense) == len(RANKINGS) + 1
    assert len(set(dense["ndcg@5"])) > 1
    assert sparse == dense


def test_scores_of_many_labels_are_not_made_dense_while_training():
    rng = np.random.default_rng(0)
    n_rows, n_labels = 3000, 6000  # 144 MB of scores, were they dense
    X = rng.normal(size=(n_rows, 3))
    cells = np.repeat(np.arange(n_rows), 2), rng.integers(40, size=2 * n_rows)
    Y = scipy.sparse.csr_array((np.ones(2 * n_rows), cells), shape=(n_rows, n_labels))
    Y.data[:] = 1
    settings = SETTINGS | {"sparse_leaves": 4, "n_estimators": 2, "eval_metric": "precision@1"}
    tracemalloc.start()
    model = PolyleafClassifier(**settings).fit(X, Y, eval_set=[(X, Y)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(model.evals_result_["validation_0"]["precision@1"]) == 2
    assert peak < 50e6
